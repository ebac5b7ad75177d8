/* SPDX-License-Identifier: Apache-2.0 */

/* Crashes in the middle of the work. */

#define FAKE_OWN_QUERY
#include <signal.h>

#include "fake.h"

EXPORT int32_t D3DKMTQueryAdapterInfo(struct d3dkmt_queryadapterinfo *arguments)
{
	if (arguments->type == D3DKMT_QUERY_ADAPTERTYPE)
		(void)raise(SIGSEGV);
	return fake_query(arguments);
}
