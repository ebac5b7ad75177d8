/* SPDX-License-Identifier: Apache-2.0 */

/* nvidia-smi, as far as `nvidia-smi -L` and `nvidia-smi` go: everything it prints came through libnvidia-ml.so.1. */

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "nvml.h"

static void *nvml;

static int print_devices(void)
{
	nvmlReturn_t (*count_devices)(unsigned int *), (*by_index)(unsigned int, nvmlDevice_t *);
	nvmlReturn_t (*get_name)(nvmlDevice_t, char *, unsigned int), (*get_uuid)(nvmlDevice_t, char *, unsigned int);
	unsigned int count;

	*(void **)&count_devices = dlsym(nvml, "nvmlDeviceGetCount_v2");
	*(void **)&by_index = dlsym(nvml, "nvmlDeviceGetHandleByIndex_v2");
	*(void **)&get_name = dlsym(nvml, "nvmlDeviceGetName");
	*(void **)&get_uuid = dlsym(nvml, "nvmlDeviceGetUUID");
	if (!count_devices || !by_index || !get_name || !get_uuid || count_devices(&count))
		return 1;

	for (unsigned int i = 0; i < count; i++) {
		char name[96], uuid[96];
		nvmlDevice_t device;

		if (by_index(i, &device) || get_name(device, name, sizeof(name)) ||
		    get_uuid(device, uuid, sizeof(uuid)))
			return 1;
		printf("GPU %u: %s (UUID: %s)\n", i, name, uuid);
	}
	return 0;
}

int main(int argc, char **argv)
{
	nvmlReturn_t (*init)(void), (*get_version)(char *, unsigned int), result;
	char version[80];

	nvml = dlopen("libnvidia-ml.so.1", RTLD_NOW);
	if (!nvml) {
		printf("NVIDIA-SMI couldn't find libnvidia-ml.so library in your system.\n");
		return 12;
	}
	*(void **)&init = dlsym(nvml, "nvmlInit_v2");
	*(void **)&get_version = dlsym(nvml, "nvmlSystemGetDriverVersion");
	result = init && get_version ? init() : NVML_ERROR_LIBRARY_NOT_FOUND;
	if (result) {
		printf("Failed to initialize NVML: %d\n", result);
		return result;
	}
	if (argc > 1 && strcmp(argv[1], "-L") == 0)
		return print_devices();
	if (get_version(version, sizeof(version)))
		return 1;
	printf("NVIDIA-SMI (simulated)   Driver Version: %s\n", version);
	return print_devices();
}
