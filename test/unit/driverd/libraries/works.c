/* SPDX-License-Identifier: Apache-2.0 */

/* Behaves; and converts its adapter's name as the real one does, character by character through the locale's multibyte form. */

#define FAKE_OWN_QUERY
#include <limits.h>
#include <stdlib.h>
#include <uchar.h>

#include "fake.h"

static bool convert(wchar_t *text, const char16_t *from)
{
	for (; *from; from++, text++) {
		char bytes[MB_LEN_MAX];
		mbstate_t state = {0};
		size_t length = c16rtomb(bytes, *from, &state);

		if (length == (size_t)-1 || mbtowc(text, bytes, length) < 0)
			return false;
	}
	*text = L'\0';
	return true;
}

EXPORT int32_t D3DKMTQueryAdapterInfo(struct d3dkmt_queryadapterinfo *arguments)
{
	int32_t status = fake_query(arguments);

	if (status == 0 && arguments->type == D3DKMT_QUERY_ADAPTERREGISTRYINFO &&
	    !convert((wchar_t *)(uintptr_t)arguments->data, u"NVIDIA GeForce RTX 4090 \u00ae"))
		return FAKE_STATUS_INVALID_PARAMETER;
	return status;
}
