/* SPDX-License-Identifier: Apache-2.0 */

/* NVML of a native host: a device is what this process may open. */

#include <stdio.h>

#include "nodes.h"
#include "nvml.h"

enum { GPU_INSTANCES = 15, COMPUTE_INSTANCES = 8, PARTS_MAX = 7 };

struct nvml_device {
	int minor;
	unsigned int gpu_instance, compute_instance; /* of a part */
	struct nvml_device *parts;
	unsigned int part_count;
};

static struct nvml_device devices[NODES_MAX], parts[NODES_MAX][PARTS_MAX];
static int device_count = -1;

static nvmlReturn_t answer(char *ret, unsigned int room, const char *text)
{
	return snprintf(ret, room, "%s", text) < (int)room ? NVML_SUCCESS : NVML_ERROR_INSUFFICIENT_SIZE;
}

static int capability_reachable(int number)
{
	char path[64];
	int fd;

	(void)snprintf(path, sizeof(path), "/dev/nvidia-caps/nvidia-cap%d", number);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0)
		(void)close(fd);
	return fd >= 0 || errno == ENXIO;
}

/* A part is there for whoever may use the capabilities of its two instances; ../native.c numbers them the same way. */
static void find_parts(struct nvml_device *gpu)
{
	for (int i = 0; i < GPU_INSTANCES * COMPUTE_INSTANCES && gpu->part_count < PARTS_MAX; i++) {
		int instance = i / COMPUTE_INSTANCES, compute = i % COMPUTE_INSTANCES;
		int number = 3 + (gpu->minor * GPU_INSTANCES + instance) * (COMPUTE_INSTANCES + 1);

		if (capability_reachable(number) && capability_reachable(number + 1 + compute))
			gpu->parts[gpu->part_count++] = (struct nvml_device){
				.minor = gpu->minor,
				.gpu_instance = (unsigned int)instance,
				.compute_instance = (unsigned int)compute,
			};
	}
}

nvmlReturn_t nvmlInit_v2(void)
{
	int minors[NODES_MAX];

	if (!node_reachable("/dev/nvidiactl"))
		return NVML_ERROR_DRIVER_NOT_LOADED;
	device_count = nodes_reachable(minors);
	for (int i = 0; i < device_count; i++) {
		devices[i] = (struct nvml_device){.minor = minors[i], .parts = parts[i]};
		find_parts(&devices[i]);
	}
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlShutdown(void)
{
	device_count = -1;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned int length)
{
	return answer(version, length, DRIVER);
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

/* The profiles of native hosts number UUIDs by the minor of the GPU; a part's has its two instances in front. */
nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned int length)
{
	unsigned int last = 0x95 + (unsigned)device->minor;
	char text[64];

	if (device->parts)
		(void)snprintf(text, sizeof(text), "GPU-b703df58-2273-35fb-29be-3f6c49b83a%02x", last);
	else
		(void)snprintf(text, sizeof(text), "MIG-%04x%04x-2273-35fb-29be-3f6c49b83a%02x", device->gpu_instance,
			       device->compute_instance, last);
	return answer(uuid, length, text);
}

nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t device, unsigned int *count)
{
	*count = device->part_count ? PARTS_MAX : 0;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t device, unsigned int index, nvmlDevice_t *part)
{
	if (index >= device->part_count)
		return NVML_ERROR_NOT_FOUND;
	*part = &device->parts[index];
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetGpuInstanceId(nvmlDevice_t part, unsigned int *id)
{
	*id = part->gpu_instance;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetComputeInstanceId(nvmlDevice_t part, unsigned int *id)
{
	*id = part->compute_instance;
	return NVML_SUCCESS;
}
