/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The driver libraries that an image should not have but often has: copied in when it was built on a machine with a GPU, or
 * installed as a dependency. They belong to another driver and cannot work; a container in which one of them is loaded got
 * the wrong one. Linked without a C library, under several SONAMEs.
 */

#define EXPORT __attribute__((visibility("default")))

enum { CUDA_ERROR_SYSTEM_DRIVER_MISMATCH = 803, NVML_ERROR_LIB_RM_VERSION_MISMATCH = 18 };

EXPORT int cuInit(unsigned flags);
EXPORT int cuDeviceGetCount(int *count);
EXPORT int cuDeviceGet(int *device, int ordinal);
EXPORT int cuDeviceGetName(char *name, int size, int device);
EXPORT int nvmlInit_v2(void);

int cuInit(unsigned flags)
{
	(void)flags;
	return CUDA_ERROR_SYSTEM_DRIVER_MISMATCH;
}

int cuDeviceGetCount(int *count)
{
	(void)count;
	return CUDA_ERROR_SYSTEM_DRIVER_MISMATCH;
}

int cuDeviceGet(int *device, int ordinal)
{
	(void)device;
	(void)ordinal;
	return CUDA_ERROR_SYSTEM_DRIVER_MISMATCH;
}

int cuDeviceGetName(char *name, int size, int device)
{
	(void)name;
	(void)size;
	(void)device;
	return CUDA_ERROR_SYSTEM_DRIVER_MISMATCH;
}

int nvmlInit_v2(void)
{
	return NVML_ERROR_LIB_RM_VERSION_MISMATCH;
}
