/* SPDX-License-Identifier: Apache-2.0 */

/* An NVML and libcuda that crashes at the first call. */

#include <signal.h>

#define CRASHES(name)                                          \
	__attribute__((visibility("default"))) int name(void); \
	int name(void)                                         \
	{                                                      \
		return raise(SIGSEGV);                         \
	}

CRASHES(nvmlInit_v2)
CRASHES(nvmlDeviceGetCount_v2)
CRASHES(nvmlDeviceGetHandleByIndex_v2)
CRASHES(nvmlDeviceGetUUID)
CRASHES(nvmlDeviceGetMaxMigDeviceCount)
CRASHES(nvmlDeviceGetMigDeviceHandleByIndex)
CRASHES(nvmlDeviceGetGpuInstanceId)
CRASHES(nvmlDeviceGetComputeInstanceId)
CRASHES(nvmlDeviceGetComputeRunningProcesses_v3)
CRASHES(cuDriverGetVersion)
