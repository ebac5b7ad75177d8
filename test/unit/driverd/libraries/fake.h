/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Parts of a libdxcore for the tests of ctr-gpu-driverd: each library there includes this and misbehaves in one way. The
 * well-behaved parts describe one NVIDIA adapter.
 */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "dxg/dxg.h"

#define EXPORT __attribute__((visibility("default"), unused))

enum { FAKE_HANDLE = 0x40000000 };

#define FAKE_STATUS_INVALID_PARAMETER ((int32_t)0xc000000d)

int32_t D3DKMTEnumAdapters3(struct d3dkmt_enumadapters3 *arguments);
int32_t D3DKMTEnumAdapters2(struct d3dkmt_enumadapters2 *arguments);
int32_t D3DKMTQueryAdapterInfo(struct d3dkmt_queryadapterinfo *arguments);
int32_t D3DKMTCloseAdapter(struct d3dkmt_closeadapter *arguments);

struct fake_registry {
	uint32_t query_type, flags;
	wchar_t value_name[D3DKMT_MAX_PATH];
	uint32_t value_type, physical_adapter, output_size, status;
	wchar_t output[2];
};
_Static_assert(sizeof(struct fake_registry) == 1072, "D3DDDI_QUERYREGISTRY_INFO");

#define FAKE_STORE L"/usr/lib/wsl/drivers/nv_dispi.inf_amd64_0123456789abcdef"

static inline int32_t fake_store(struct d3dkmt_queryadapterinfo *arguments)
{
	static const wchar_t store[] = FAKE_STORE;
	struct fake_registry *registry = (struct fake_registry *)(uintptr_t)arguments->data;

	if (registry->query_type != D3DKMT_REGISTRY_DRIVERSTOREPATH || arguments->size < sizeof(*registry))
		return FAKE_STATUS_INVALID_PARAMETER;
	/* As the library does it: the size of the Windows path, which is longer than what it gives. */
	registry->output_size = sizeof(store) + 16 * sizeof(wchar_t);
	registry->status = D3DKMT_REGISTRY_OVERFLOW;
	if (arguments->size < sizeof(*registry) + registry->output_size)
		return 0;
	registry->status = 0;
	memcpy(registry->output, store, sizeof(store));
	return 0;
}

static inline int32_t fake_query(struct d3dkmt_queryadapterinfo *arguments)
{
	void *data = (void *)(uintptr_t)arguments->data;

	switch (arguments->type) {
	case D3DKMT_QUERY_DRIVERVERSION:
		*(uint32_t *)data = 3100;
		return 0;
	case D3DKMT_QUERY_ADAPTERTYPE:
		*(uint32_t *)data = D3DKMT_TYPE_RENDER | D3DKMT_TYPE_PARAVIRTUALIZED;
		return 0;
	case D3DKMT_QUERY_DEVICE_IDS:
		*(struct d3dkmt_device_ids *)data = (struct d3dkmt_device_ids){.vendor = 0x10de, .device = 0x2684};
		return 0;
	case D3DKMT_QUERY_ADAPTERADDRESS:
		*(struct d3dkmt_adapteraddress *)data = (struct d3dkmt_adapteraddress){.bus = 1};
		return 0;
	case D3DKMT_QUERY_ADAPTERREGISTRYINFO:
		/* The real one writes past its stack then, with some names. */
		abort();
	case D3DKMT_QUERY_QUERYREGISTRY:
		return fake_store(arguments);
	default:
		return FAKE_STATUS_INVALID_PARAMETER;
	}
}

#ifndef FAKE_OWN_ENUMERATE
EXPORT int32_t D3DKMTEnumAdapters3(struct d3dkmt_enumadapters3 *arguments)
{
	struct d3dkmt_adapterinfo *adapters = (struct d3dkmt_adapterinfo *)(uintptr_t)arguments->adapters;

	adapters[0] = (struct d3dkmt_adapterinfo){.handle = FAKE_HANDLE, .luid = {.low = 0x1234, .high = -2}};
	arguments->count = 1;
	return 0;
}

EXPORT int32_t D3DKMTEnumAdapters2(struct d3dkmt_enumadapters2 *arguments)
{
	(void)arguments;
	return FAKE_STATUS_INVALID_PARAMETER;
}
#endif

#ifndef FAKE_OWN_QUERY
EXPORT int32_t D3DKMTQueryAdapterInfo(struct d3dkmt_queryadapterinfo *arguments)
{
	return fake_query(arguments);
}
#endif

EXPORT int32_t D3DKMTCloseAdapter(struct d3dkmt_closeadapter *arguments)
{
	return arguments->handle == FAKE_HANDLE ? 0 : FAKE_STATUS_INVALID_PARAMETER;
}
