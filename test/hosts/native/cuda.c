/* SPDX-License-Identifier: Apache-2.0 */

/*
 * libcuda of a simulated native host. Behind its nodes stands no driver, so opening one that the device rules allow fails
 * with ENXIO, and one that they forbid with EPERM: that is all a test needs to know.
 */

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

enum { CUDA_ERROR_OUT_OF_MEMORY = 2, CUDA_ERROR_NO_DEVICE = 100, CUDA_ERROR_SYSTEM_NOT_READY = 802, GPUS_MAX = 32 };

static int may_open(const char *path)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);

	if (fd >= 0)
		(void)close(fd);
	return fd >= 0 || errno == ENXIO;
}

__attribute__((visibility("default"))) int cuInit(unsigned flags);
__attribute__((visibility("default"))) int cuDriverGetVersion(int *version);
__attribute__((visibility("default"))) int cuDeviceGetCount(int *count);
__attribute__((visibility("default"))) int cuDeviceGet(int *device, int ordinal);
__attribute__((visibility("default"))) int cuDeviceGetName(char *name, int size, int device);

int cuInit(unsigned flags)
{
	(void)flags;
	if (!may_open("/dev/nvidiactl"))
		return CUDA_ERROR_NO_DEVICE;
	if (!may_open("/dev/nvidia-uvm"))
		return CUDA_ERROR_SYSTEM_NOT_READY;
	/* The real one loads its compiler by SONAME, through the loader's cache. */
	return dlopen("libnvidia-ptxjitcompiler.so.1", RTLD_NOW) ? 0 : CUDA_ERROR_OUT_OF_MEMORY;
}

/* Asked without a device, as old drivers are that carry no note. */
int cuDriverGetVersion(int *version)
{
	*version = 12080;
	return 0;
}

int cuDeviceGetCount(int *count)
{
	char path[32];

	*count = 0;
	for (int i = 0; i < GPUS_MAX; i++) {
		(void)snprintf(path, sizeof(path), "/dev/nvidia%d", i);
		*count += may_open(path);
	}
	return 0;
}

/* A device is the minor of its node, so that a test sees which ones there are. */
int cuDeviceGet(int *device, int ordinal)
{
	char path[32];

	for (int i = 0; i < GPUS_MAX; i++) {
		(void)snprintf(path, sizeof(path), "/dev/nvidia%d", i);
		if (may_open(path) && ordinal-- == 0) {
			*device = i;
			return 0;
		}
	}
	return CUDA_ERROR_NO_DEVICE;
}

int cuDeviceGetName(char *name, int size, int device)
{
	(void)snprintf(name, (size_t)size, "minor %d", device);
	return 0;
}
