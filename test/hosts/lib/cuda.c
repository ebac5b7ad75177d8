/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The loader libcuda of /usr/lib/wsl/lib: it asks libdxcore for the NVIDIA adapters, loads each one's own libcuda from its
 * driver store by absolute path, and hands calls on. Where no store can be loaded there is no device.
 */

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "cuda.h"
#include "kmt.h"

struct driver {
	char store[KMT_TEXT_MAX];
	int devices;
	CUresult (*version)(int *);
	CUresult (*name)(char *, int, CUdevice);
	CUresult (*address)(char *, int, CUdevice);
};

static struct driver drivers[KMT_ADAPTERS_MAX];
static int driver_count;

static int load(const char *store, struct driver *ret)
{
	char path[KMT_TEXT_MAX + 32];
	CUresult (*init)(unsigned int), (*count)(int *);
	void *library;

	(void)snprintf(path, sizeof(path), "%s/libcuda.so.1.1", store);
	library = dlopen(path, RTLD_NOW);
	if (!library)
		return -1;
	*(void **)&init = dlsym(library, "cuInit");
	*(void **)&count = dlsym(library, "cuDeviceGetCount");
	*(void **)&ret->version = dlsym(library, "cuDriverGetVersion");
	*(void **)&ret->name = dlsym(library, "cuDeviceGetName");
	*(void **)&ret->address = dlsym(library, "cuDeviceGetPCIBusId");
	if (!init || !count || !ret->version || !ret->name || !ret->address)
		return -1;
	(void)snprintf(ret->store, sizeof(ret->store), "%s", store);
	return init(0) || count(&ret->devices) ? -1 : 0;
}

static int is_loaded(const char *store)
{
	for (int i = 0; i < driver_count; i++)
		if (strcmp(drivers[i].store, store) == 0)
			return 1;
	return 0;
}

CUresult cuInit(unsigned int flags)
{
	struct kmt_adapter all[KMT_ADAPTERS_MAX];
	int count;

	if (flags)
		return CUDA_ERROR_INVALID_VALUE;
	count = kmt_adapters(KMT_NVIDIA, all, KMT_ADAPTERS_MAX);
	for (int i = 0; i < count; i++)
		if (!is_loaded(all[i].store) && load(all[i].store, &drivers[driver_count]) == 0)
			driver_count++;
	return driver_count ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE;
}

static const struct driver *driver_of(CUdevice *device)
{
	for (int i = 0; i < driver_count; i++) {
		if (*device >= 0 && *device < drivers[i].devices)
			return &drivers[i];
		*device -= drivers[i].devices;
	}
	return NULL;
}

CUresult cuDriverGetVersion(int *version)
{
	return driver_count ? drivers[0].version(version) : CUDA_ERROR_NOT_INITIALIZED;
}

CUresult cuDeviceGetCount(int *count)
{
	if (!driver_count)
		return CUDA_ERROR_NOT_INITIALIZED;
	*count = 0;
	for (int i = 0; i < driver_count; i++)
		*count += drivers[i].devices;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
	CUdevice inner = ordinal;

	if (!driver_of(&inner))
		return CUDA_ERROR_INVALID_DEVICE;
	*device = ordinal;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char *name, int length, CUdevice device)
{
	const struct driver *driver = driver_of(&device);

	return driver ? driver->name(name, length, device) : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDeviceGetPCIBusId(char *id, int length, CUdevice device)
{
	const struct driver *driver = driver_of(&device);

	return driver ? driver->address(id, length, device) : CUDA_ERROR_INVALID_DEVICE;
}
