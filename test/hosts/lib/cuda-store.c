/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The driver's own libcuda, as it lies in a driver store. It serves the adapters whose store is the directory that it was
 * loaded from, so that a container which sees one store of two has one vendor driver of two.
 */

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda.h"
#include "kmt.h"

#define FORWARD_COMPATIBILITY \
	"{\"format\":1,\"CUDA version\":\"12.8\",\"driver\":[535,550,560,565,570],\"device\":[7,8,9,10,12]}"

/* The note by which tools tell a driver's CUDA version without loading it; as in NVIDIA's libcuda. */
__attribute__((section(".note.cuda.fwd_compatibility"), aligned(4), used)) static const struct {
	uint32_t name_size, data_size, type;
	char name[20];
	char data[(sizeof(FORWARD_COMPATIBILITY) + 3) & ~3u];
} note = {sizeof("NVIDIA Corporation"), sizeof(FORWARD_COMPATIBILITY), 0, "NVIDIA Corporation", FORWARD_COMPATIBILITY};

static struct kmt_adapter adapters[KMT_ADAPTERS_MAX];
static int adapter_count;
static int initialised;

/* Whether an adapter's store is the directory of this very file. */
static int is_ours(const struct kmt_adapter *adapter)
{
	Dl_info where;
	size_t length = strlen(adapter->store);

	return dladdr(&adapter_count, &where) && strncmp(where.dli_fname, adapter->store, length) == 0 &&
	       where.dli_fname[length] == '/';
}

CUresult cuInit(unsigned int flags)
{
	struct kmt_adapter all[KMT_ADAPTERS_MAX];
	int count;

	if (flags)
		return CUDA_ERROR_INVALID_VALUE;
	count = kmt_adapters(KMT_NVIDIA, all, KMT_ADAPTERS_MAX);
	adapter_count = 0;
	for (int i = 0; i < count; i++)
		if (is_ours(&all[i]))
			adapters[adapter_count++] = all[i];
	initialised = 1;
	return adapter_count ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE;
}

CUresult cuDriverGetVersion(int *version)
{
	*version = 12080;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int *count)
{
	if (!initialised)
		return CUDA_ERROR_NOT_INITIALIZED;
	*count = adapter_count;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
	if (ordinal < 0 || ordinal >= adapter_count)
		return CUDA_ERROR_INVALID_DEVICE;
	*device = ordinal;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char *name, int length, CUdevice device)
{
	if (device < 0 || device >= adapter_count)
		return CUDA_ERROR_INVALID_DEVICE;
	(void)snprintf(name, (size_t)length, "%s", adapters[device].name);
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetPCIBusId(char *id, int length, CUdevice device)
{
	const ADAPTERADDRESS *address;

	if (device < 0 || device >= adapter_count)
		return CUDA_ERROR_INVALID_DEVICE;
	address = &adapters[device].address;
	(void)snprintf(id, (size_t)length, "0000:%02X:%02X.%X", address->BusNumber, address->DeviceNumber,
		       address->FunctionNumber);
	return CUDA_SUCCESS;
}
