/* SPDX-License-Identifier: Apache-2.0 */

/* Strings without an end, and a size of the store's path that is absurd for one adapter and full for the other. */

#define FAKE_OWN_ENUMERATE
#define FAKE_OWN_QUERY
#include "fake.h"

EXPORT int32_t D3DKMTEnumAdapters3(struct d3dkmt_enumadapters3 *arguments)
{
	struct d3dkmt_adapterinfo *adapters = (struct d3dkmt_adapterinfo *)(uintptr_t)arguments->adapters;

	for (uint32_t i = 0; i < 2; i++)
		adapters[i] = (struct d3dkmt_adapterinfo){.handle = FAKE_HANDLE + i, .luid = {.low = i}};
	arguments->count = 2;
	return 0;
}

EXPORT int32_t D3DKMTEnumAdapters2(struct d3dkmt_enumadapters2 *arguments)
{
	(void)arguments;
	return FAKE_STATUS_INVALID_PARAMETER;
}

EXPORT int32_t D3DKMTQueryAdapterInfo(struct d3dkmt_queryadapterinfo *arguments)
{
	struct fake_registry *registry = (struct fake_registry *)(uintptr_t)arguments->data;

	if (arguments->type != D3DKMT_QUERY_QUERYREGISTRY)
		return fake_query(arguments);
	registry->output_size = arguments->handle == FAKE_HANDLE ? 0xfffffff0 : D3DKMT_MAX_PATH * sizeof(wchar_t);
	registry->status = arguments->size == sizeof(*registry) ? D3DKMT_REGISTRY_OVERFLOW : 0;
	for (size_t i = 0; registry->status == 0 && i < D3DKMT_MAX_PATH; i++)
		registry->output[i] = L'x';
	return 0;
}
