/* SPDX-License-Identifier: Apache-2.0 */

/* libcuda of a native host: a device is what this process may open. */

#include <dlfcn.h>
#include <stdio.h>

#include "cuda.h"
#include "nodes.h"

static int minors[NODES_MAX];
static int device_count = -1;

CUresult cuInit(unsigned int flags)
{
	if (flags)
		return CUDA_ERROR_INVALID_VALUE;
	if (!node_reachable("/dev/nvidiactl") || !node_reachable("/dev/nvidia-uvm"))
		return CUDA_ERROR_NO_DEVICE;
	/* The real one loads its compiler by SONAME, through the loader's cache. */
	if (!dlopen("libnvidia-ptxjitcompiler.so.1", RTLD_NOW))
		return CUDA_ERROR_OUT_OF_MEMORY;
	device_count = nodes_reachable(minors);
	return device_count ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE;
}

/* Needs no cuInit(). */
CUresult cuDriverGetVersion(int *version)
{
	*version = CUDA_VERSION;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int *count)
{
	if (device_count < 0)
		return CUDA_ERROR_NOT_INITIALIZED;
	*count = device_count;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
	if (ordinal < 0 || ordinal >= device_count)
		return CUDA_ERROR_INVALID_DEVICE;
	*device = ordinal;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char *name, int length, CUdevice device)
{
	if (device < 0 || device >= device_count)
		return CUDA_ERROR_INVALID_DEVICE;
	(void)snprintf(name, (size_t)length, "NVIDIA H200");
	return CUDA_SUCCESS;
}

/* The profiles of native hosts number buses by the minor of the GPU, 6 and up. */
CUresult cuDeviceGetPCIBusId(char *id, int length, CUdevice device)
{
	if (device < 0 || device >= device_count)
		return CUDA_ERROR_INVALID_DEVICE;
	(void)snprintf(id, (size_t)length, "0000:00:%02X.0", 6 + (unsigned)minors[device]);
	return CUDA_SUCCESS;
}
