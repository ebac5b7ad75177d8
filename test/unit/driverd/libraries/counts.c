/* SPDX-License-Identifier: Apache-2.0 */

/* Counts more adapters than it had room for. */

#define FAKE_OWN_ENUMERATE
#include "fake.h"

EXPORT int32_t D3DKMTEnumAdapters3(struct d3dkmt_enumadapters3 *arguments)
{
	arguments->count = 0xffffffff;
	return 0;
}

EXPORT int32_t D3DKMTEnumAdapters2(struct d3dkmt_enumadapters2 *arguments)
{
	arguments->count = D3DKMT_MAX_ADAPTERS + 1;
	return 0;
}
