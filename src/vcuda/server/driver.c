/* SPDX-License-Identifier: Apache-2.0 */

#include "vcuda/server/driver.h"

#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>

#include "vcuda/driver_api.h"

struct driver_api driver;

int driver_load(const char *library)
{
	void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);

	if (!handle)
		return -ENOENT;
#define X(name) *(void **)&driver.name = dlsym(handle, #name);
	DRIVER_API(X)
#undef X
	/* Parameters of kernels can be asked for from CUDA 12.4 on, and nothing works without. */
	return driver.cuInit && driver.cuFuncGetParamInfo ? 0 : -ENOTSUP;
}
