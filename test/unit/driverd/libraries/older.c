/* SPDX-License-Identifier: Apache-2.0 */

/* Has no D3DKMTEnumAdapters3, as the first ones for Linux. */

#define FAKE_OWN_ENUMERATE
#include "fake.h"

EXPORT int32_t D3DKMTEnumAdapters2(struct d3dkmt_enumadapters2 *arguments)
{
	struct d3dkmt_adapterinfo *adapters = (struct d3dkmt_adapterinfo *)(uintptr_t)arguments->adapters;

	adapters[0] = (struct d3dkmt_adapterinfo){.handle = FAKE_HANDLE, .luid = {.low = 0x77}};
	arguments->count = 1;
	return 0;
}
