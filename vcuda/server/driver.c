/* SPDX-License-Identifier: Apache-2.0 */

#include "vcuda/server/driver.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "vcuda/driver_api.h"
#include "vcuda/protocol/start.h"

struct driver_api driver;

static char driver_version[DRIVER_VERSION];
static void *driver_handle;

const char *driver_name(void)
{
	return driver_version;
}

/* A native driver's file is libcuda.so.580.159.04; elsewhere (libcuda.so.1.1 of WSL) its name says nothing. */
static void driver_read_version(void *handle)
{
	const struct link_map *map = NULL;
	const char *version;
	char *path = NULL;

	if (dlinfo(handle, RTLD_DI_LINKMAP, (void *)&map) == 0)
		path = realpath(map->l_name, NULL);
	version = path ? strstr(path, "libcuda.so.") : NULL;
	version = version ? version + strlen("libcuda.so.") : "";
	if (strlen(version) > strlen("1.1") && strlen(version) < sizeof(driver_version) &&
	    strspn(version, "0123456789.") == strlen(version))
		memcpy(driver_version, version, strlen(version) + 1);
	free(path);
}

void *driver_load_beside(const char *name)
{
	const struct link_map *map = NULL;
	char path[START_PATH];
	const char *end;
	int length;

	if (dlinfo(driver_handle, RTLD_DI_LINKMAP, (void *)&map) != 0)
		return NULL;
	end = strrchr(map->l_name, '/');
	length = snprintf(path, sizeof(path), "%.*s%s", end ? (int)(end + 1 - map->l_name) : 0, map->l_name, name);
	return length > 0 && (size_t)length < sizeof(path) ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
}

int driver_load(const char *library)
{
	void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);

	if (!handle)
		return -ENOENT;
	driver_handle = handle;
#define X(name) *(void **)&driver.name = dlsym(handle, #name);
	DRIVER_API(X)
#undef X
	driver_read_version(handle);
	/* Parameters of kernels can be asked for from CUDA 12.4 on, and nothing works without. */
	return driver.cuInit && driver.cuFuncGetParamInfo ? 0 : -ENOTSUP;
}

/*
 * Where nvidia-uvm uses HMM, or the host's own page tables, kernels reach all memory of their process, which here is
 * the server. A process can say that they shall not, by flags of its first call to /dev/nvidia-uvm. NVIDIA's library
 * makes that call and has no setting for it; but as every library it looks ioctl() up in the program first.
 */

enum { UVM_INITIALIZE = 0x30000001 };

/*
 * NO_HMM is known to all versions; from 610 on it only keeps pages where they are, and NO_ACCESS is what takes access
 * away. Before, that one makes the call fail, and it can be made again.
 */
enum { NO_HMM = 1, NO_ACCESS = 4 };

int uvm_flags_begin(int fd, struct uvm_flags_begin *begin, int (*call)(int fd, struct uvm_flags_begin *begin))
{
	static const uint64_t added[] = {NO_HMM | NO_ACCESS, NO_HMM, 0};
	const uint64_t asked = begin->flags;
	int r = -1;

	for (size_t i = 0; i < sizeof(added) / sizeof(added[0]); i++) {
		begin->flags = asked | added[i];
		begin->status = 0;
		r = call(fd, begin);
		if (r < 0 || begin->status == 0)
			break;
	}
	return r;
}

static int uvm_flags_call(int fd, struct uvm_flags_begin *begin)
{
	return (int)syscall(SYS_ioctl, fd, (unsigned long)UVM_INITIALIZE, begin);
}

/* In place of the C library's, for the driver's libraries. */
__attribute__((visibility("default"))) int uvm_flags_ioctl(int fd, unsigned long request, ...) __asm__("ioctl");

int uvm_flags_ioctl(int fd, unsigned long request, ...)
{
	void *argument;
	va_list list;

	va_start(list, request);
	argument = va_arg(list, void *);
	va_end(list);
	if (request == UVM_INITIALIZE)
		return uvm_flags_begin(fd, argument, uvm_flags_call);
	return (int)syscall(SYS_ioctl, fd, request, argument);
}
