/* SPDX-License-Identifier: Apache-2.0 */

/* The loader NVML of /usr/lib/wsl/lib: the first NVIDIA adapter whose store has one provides it. */

#include <dlfcn.h>
#include <stdio.h>

#include "kmt.h"
#include "nvml.h"

static void *driver;

static void *function(const char *name)
{
	return driver ? dlsym(driver, name) : NULL;
}

#define FORWARD(name, parameters, arguments)                               \
	nvmlReturn_t name parameters                                       \
	{                                                                  \
		nvmlReturn_t(*inner) parameters;                           \
                                                                           \
		*(void **)&inner = function(#name);                        \
		return inner ? inner arguments : NVML_ERROR_UNINITIALIZED; \
	}

nvmlReturn_t nvmlInit_v2(void)
{
	struct kmt_adapter all[KMT_ADAPTERS_MAX];
	char path[KMT_TEXT_MAX + 32];
	nvmlReturn_t (*init)(void);
	int count = kmt_adapters(KMT_NVIDIA, all, KMT_ADAPTERS_MAX);

	for (int i = 0; i < count && !driver; i++) {
		(void)snprintf(path, sizeof(path), "%s/libnvidia-ml.so.1", all[i].store);
		driver = dlopen(path, RTLD_NOW);
	}
	*(void **)&init = function("nvmlInit_v2");
	return init ? init() : NVML_ERROR_LIBRARY_NOT_FOUND;
}

FORWARD(nvmlShutdown, (void), ())
FORWARD(nvmlSystemGetDriverVersion, (char *version, unsigned int length), (version, length))
FORWARD(nvmlDeviceGetCount_v2, (unsigned int *count), (count))
FORWARD(nvmlDeviceGetHandleByIndex_v2, (unsigned int index, nvmlDevice_t *device), (index, device))
FORWARD(nvmlDeviceGetName, (nvmlDevice_t device, char *name, unsigned int length), (device, name, length))
FORWARD(nvmlDeviceGetUUID, (nvmlDevice_t device, char *uuid, unsigned int length), (device, uuid, length))
