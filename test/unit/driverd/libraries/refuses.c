/* SPDX-License-Identifier: Apache-2.0 */

/* Loaded without a /dev/dxg that it could open: every call fails. */

#define FAKE_OWN_ENUMERATE
#include "fake.h"

EXPORT int32_t D3DKMTEnumAdapters3(struct d3dkmt_enumadapters3 *arguments)
{
	(void)arguments;
	return (int32_t)0xc0000001;
}

EXPORT int32_t D3DKMTEnumAdapters2(struct d3dkmt_enumadapters2 *arguments)
{
	(void)arguments;
	return (int32_t)0xc0000001;
}
