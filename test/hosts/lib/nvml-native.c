/* SPDX-License-Identifier: Apache-2.0 */

/* NVML of a native host: a device is what this process may open. */

#include <stdio.h>

#include "nodes.h"
#include "nvml.h"

struct nvml_device {
	int minor;
};

static struct nvml_device devices[NODES_MAX];
static int device_count = -1;

static nvmlReturn_t answer(char *ret, unsigned int room, const char *text)
{
	return snprintf(ret, room, "%s", text) < (int)room ? NVML_SUCCESS : NVML_ERROR_INSUFFICIENT_SIZE;
}

nvmlReturn_t nvmlInit_v2(void)
{
	int minors[NODES_MAX];

	if (!node_reachable("/dev/nvidiactl"))
		return NVML_ERROR_DRIVER_NOT_LOADED;
	device_count = nodes_reachable(minors);
	for (int i = 0; i < device_count; i++)
		devices[i].minor = minors[i];
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlShutdown(void)
{
	device_count = -1;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned int length)
{
	return answer(version, length, "580.159.04");
}

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *count)
{
	if (device_count < 0)
		return NVML_ERROR_UNINITIALIZED;
	*count = (unsigned int)device_count;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device)
{
	if ((int)index < 0 || (int)index >= device_count)
		return NVML_ERROR_INVALID_ARGUMENT;
	*device = &devices[index];
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned int length)
{
	(void)device;
	return answer(name, length, "NVIDIA H200");
}

/* The profiles of native hosts number UUIDs by the minor of the GPU. */
nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned int length)
{
	char text[64];

	(void)snprintf(text, sizeof(text), "GPU-b703df58-2273-35fb-29be-3f6c49b83a%02x", 0x95 + (unsigned)device->minor);
	return answer(uuid, length, text);
}
