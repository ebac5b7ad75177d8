/* SPDX-License-Identifier: Apache-2.0 */

#include "kmt.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct kmt {
	int32_t (*enumerate)(D3DKMT_ENUMADAPTERS2 *);
	int32_t (*query)(const D3DKMT_QUERYADAPTERINFO *);
	int32_t (*close)(const D3DKMT_CLOSEADAPTER *);
};

static bool load(struct kmt *ret)
{
	void *library = dlopen("libdxcore.so", RTLD_NOW);

	if (!library)
		return false;
	*(void **)&ret->enumerate = dlsym(library, "D3DKMTEnumAdapters2");
	*(void **)&ret->query = dlsym(library, "D3DKMTQueryAdapterInfo");
	*(void **)&ret->close = dlsym(library, "D3DKMTCloseAdapter");
	return ret->enumerate && ret->query && ret->close;
}

static bool query(const struct kmt *kmt, uint32_t handle, uint32_t type, void *data, uint32_t size)
{
	D3DKMT_QUERYADAPTERINFO args = {
		.hAdapter = handle,
		.Type = type,
		.pPrivateDriverData = (uintptr_t)data,
		.PrivateDriverDataSize = size,
	};

	return kmt->query(&args) >= 0;
}

static void narrow(char *ret, const uint32_t *wide)
{
	size_t i = 0;

	for (; wide[i] && i + 1 < KMT_TEXT_MAX; i++)
		ret[i] = wide[i] < 0x80 ? (char)wide[i] : '?';
	ret[i] = '\0';
}

static void query_store(const struct kmt *kmt, uint32_t handle, char *ret)
{
	QUERYREGISTRY_LIBRARY size = {.QueryType = REGISTRY_DRIVERSTOREPATH}, *full;
	uint32_t bytes;

	if (!query(kmt, handle, QUERY_QUERYREGISTRY, &size, sizeof(size)) || size.Status != REGISTRY_OVERFLOW)
		return;
	bytes = (uint32_t)sizeof(size) + size.OutputValueSize;
	full = calloc(1, bytes);
	if (!full)
		return;
	full->QueryType = REGISTRY_DRIVERSTOREPATH;
	if (query(kmt, handle, QUERY_QUERYREGISTRY, full, bytes) && full->Status == REGISTRY_SUCCESS)
		narrow(ret, full->OutputString);
	free(full);
}

static bool describe(const struct kmt *kmt, const D3DKMT_ADAPTERINFO *info, struct kmt_adapter *ret)
{
	QUERY_DEVICE_IDS ids = {0};
	uint32_t *text;

	memset(ret, 0, sizeof(*ret));
	ret->luid = info->AdapterLuid;
	if (!query(kmt, info->hAdapter, QUERY_PHYSICALADAPTERDEVICEIDS, &ids, sizeof(ids)))
		return false;
	ret->vendor = ids.VendorID;
	(void)query(kmt, info->hAdapter, QUERY_ADAPTERADDRESS, &ret->address, sizeof(ret->address));
	query_store(kmt, info->hAdapter, ret->store);

	text = calloc(4096, sizeof(*text));
	if (text && query(kmt, info->hAdapter, QUERY_DRIVER_DESCRIPTION, text, 4096 * sizeof(*text)))
		narrow(ret->name, text);
	free(text);
	return true;
}

int kmt_adapters(uint32_t vendor, struct kmt_adapter *ret, int capacity)
{
	D3DKMT_ADAPTERINFO infos[ADAPTERS_MAX];
	D3DKMT_ENUMADAPTERS2 all = {.NumAdapters = ADAPTERS_MAX, .pAdapters = (uintptr_t)infos};
	struct kmt kmt;
	int count = 0;

	if (!load(&kmt) || kmt.enumerate(&all) < 0)
		return -1;
	for (uint32_t i = 0; i < all.NumAdapters; i++) {
		D3DKMT_CLOSEADAPTER handle = {infos[i].hAdapter};

		if (count < capacity && describe(&kmt, &infos[i], &ret[count]) && ret[count].vendor == vendor)
			count++;
		(void)kmt.close(&handle);
	}
	return count;
}

void kmt_uuid(const struct kmt_adapter *adapter, char *ret)
{
	(void)snprintf(ret, 41, "GPU-%08x-%04x-%04x-%04x-%04x%08x", adapter->luid.LowPart,
		       adapter->address.BusNumber & 0xffffu, adapter->address.DeviceNumber & 0xffffu,
		       adapter->address.FunctionNumber & 0xffffu, (uint32_t)adapter->luid.HighPart & 0xffffu,
		       ~adapter->luid.LowPart);
}
