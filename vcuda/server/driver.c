/* SPDX-License-Identifier: Apache-2.0 */

#include "vcuda/server/driver.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
