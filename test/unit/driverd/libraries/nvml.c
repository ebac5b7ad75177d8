/* SPDX-License-Identifier: Apache-2.0 */

/*
 * An NVML and libcuda that wants everything: more GPUs and parts than there can be, UUIDs without an end, and files of
 * somebody else's. What it could do to files it tells as the first GPU instance's number.
 */

#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT int nvmlInit_v2(void);
EXPORT int nvmlDeviceGetCount_v2(unsigned *count);
EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device);
EXPORT int nvmlDeviceGetUUID(void *device, char *uuid, unsigned size);
EXPORT int nvmlDeviceGetMaxMigDeviceCount(void *device, unsigned *count);
EXPORT int nvmlDeviceGetMigDeviceHandleByIndex(void *device, unsigned index, void **part);
EXPORT int nvmlDeviceGetGpuInstanceId(void *part, unsigned *id);
EXPORT int nvmlDeviceGetComputeInstanceId(void *part, unsigned *id);
EXPORT int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count, void *processes);
EXPORT int nvmlDeviceGetProcessUtilization(void *device, void *samples, unsigned *count, unsigned long long since);
EXPORT int cuDriverGetVersion(int *version);

enum { PROCESS_SIZE = 24, SAMPLE_SIZE = 32 };

static unsigned gained;

/* By a mapping that others share, or by write(2). */
static bool changes_file(const char *path)
{
	const int fd = open(path, O_RDWR | O_CLOEXEC);
	void *shared = mmap(NULL, 1, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (shared == MAP_FAILED)
		shared = mmap(NULL, 1, PROT_READ, MAP_SHARED_VALIDATE, fd, 0);
	return fd >= 0 && shared != MAP_FAILED;
}

/* A device node that is everybody's may be opened; files may not be made, cut off or changed. */
int nvmlInit_v2(void)
{
	gained = (open("/dev/null", O_RDWR | O_CLOEXEC) >= 0 ? 1U : 0U) |
		 (open("/tmp/ctr-gpu-nvml-test", O_RDWR | O_CREAT | O_CLOEXEC, 0600) >= 0 ? 2U : 0U) |
		 (changes_file("/tmp/ctr-gpu-nvml-everybodys") ? 64U : 0U) |
		 (open("/dev/zero", O_RDWR | O_TRUNC | O_CLOEXEC) >= 0 ? 4U : 0U) |
		 (open("/etc/passwd", O_RDWR | O_CLOEXEC) >= 0 ? 8U : 0U) |
		 (open("/dev/zero", O_WRONLY | O_CLOEXEC) >= 0 ? 16U : 0U) |
		 (open("/tmp", O_RDWR | O_TMPFILE | O_CLOEXEC, 0600) >= 0 ? 32U : 0U);
	return 0;
}

int nvmlDeviceGetCount_v2(unsigned *count)
{
	*count = UINT_MAX;
	return 0;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device)
{
	(void)index;
	*device = &gained;
	return 0;
}

int nvmlDeviceGetUUID(void *device, char *uuid, unsigned size)
{
	(void)device;
	memset(uuid, 'U', size);
	return 0;
}

int nvmlDeviceGetMaxMigDeviceCount(void *device, unsigned *count)
{
	(void)device;
	*count = UINT_MAX;
	return 0;
}

int nvmlDeviceGetMigDeviceHandleByIndex(void *device, unsigned index, void **part)
{
	(void)index;
	*part = device;
	return 0;
}

int nvmlDeviceGetGpuInstanceId(void *part, unsigned *id)
{
	(void)part;
	*id = gained;
	return 0;
}

int nvmlDeviceGetComputeInstanceId(void *part, unsigned *id)
{
	(void)part;
	*id = UINT_MAX;
	return 0;
}

/* As many as there is room for, each with another PID, and more. */
int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count, void *processes)
{
	char *process = processes;

	(void)device;
	memset(processes, 0, *count * PROCESS_SIZE);
	for (unsigned i = 0; i < *count; i++, process += PROCESS_SIZE)
		memcpy(process, &i, sizeof(i));
	*count = UINT_MAX;
	return 0;
}

int nvmlDeviceGetProcessUtilization(void *device, void *samples, unsigned *count, unsigned long long since)
{
	(void)device;
	(void)since;
	memset(samples, 0x77, *count * SAMPLE_SIZE);
	*count = UINT_MAX;
	return 0;
}

int cuDriverGetVersion(int *version)
{
	*version = INT_MAX;
	return 0;
}
