/* SPDX-License-Identifier: Apache-2.0 */

/*
 * NVML of a simulated native host: two GPUs, the second in parts, as the profile "mig" declares them. Like the real one it
 * opens the control device for both reading and writing.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

enum { NVML_ERROR_NOT_FOUND = 6, NVML_ERROR_NO_PERMISSION = 4, PARTS = 3 };

#define EXPORT __attribute__((visibility("default")))

struct device {
	const char *uuid;
	unsigned gpu_instance, compute_instance;
};

static struct device gpus[] = {{"GPU-b703df58-2273-35fb-29be-3f6c49b83a95", 0, 0}, {"GPU-5c89852c-d268-c3f3-1b07-005d5ae1dc3f", 0, 0}};
static struct device parts[PARTS] = {
	{"MIG-11111111-58a6-5f08-a9e1-2cd1b4a1b8f0", 2, 0},
	{"MIG-22222222-58a6-5f08-a9e1-2cd1b4a1b8f0", 9, 0},
	{"MIG-33333333-58a6-5f08-a9e1-2cd1b4a1b8f0", 9, 1},
};

EXPORT int nvmlInit_v2(void);
EXPORT int nvmlDeviceGetCount_v2(unsigned *count);
EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned index, struct device **device);
EXPORT int nvmlDeviceGetUUID(const struct device *device, char *uuid, unsigned size);
EXPORT int nvmlDeviceGetMaxMigDeviceCount(const struct device *device, unsigned *count);
EXPORT int nvmlDeviceGetMigDeviceHandleByIndex(const struct device *device, unsigned index, struct device **part);
EXPORT int nvmlDeviceGetGpuInstanceId(const struct device *part, unsigned *id);
EXPORT int nvmlDeviceGetComputeInstanceId(const struct device *part, unsigned *id);

int nvmlInit_v2(void)
{
	return open("/dev/nvidiactl", O_RDWR | O_CLOEXEC) >= 0 || errno == ENXIO ? 0 : NVML_ERROR_NO_PERMISSION;
}

int nvmlDeviceGetCount_v2(unsigned *count)
{
	*count = sizeof(gpus) / sizeof(gpus[0]);
	return 0;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, struct device **device)
{
	*device = &gpus[index];
	return 0;
}

int nvmlDeviceGetUUID(const struct device *device, char *uuid, unsigned size)
{
	(void)snprintf(uuid, size, "%s", device->uuid);
	return 0;
}

int nvmlDeviceGetMaxMigDeviceCount(const struct device *device, unsigned *count)
{
	*count = device == &gpus[1] ? 7 : 0;
	return 0;
}

int nvmlDeviceGetMigDeviceHandleByIndex(const struct device *device, unsigned index, struct device **part)
{
	if (device != &gpus[1] || index >= PARTS)
		return NVML_ERROR_NOT_FOUND;
	*part = &parts[index];
	return 0;
}

int nvmlDeviceGetGpuInstanceId(const struct device *part, unsigned *id)
{
	*id = part->gpu_instance;
	return 0;
}

int nvmlDeviceGetComputeInstanceId(const struct device *part, unsigned *id)
{
	*id = part->compute_instance;
	return 0;
}
