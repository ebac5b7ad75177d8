/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Libraries: an image without a context, of which each context makes a module when it first needs it. A kernel's handle may
 * stand where a function's does.
 */

#include <stdlib.h>
#include <string.h>

#include "sim.h"

enum { KERNELS_MAX = 64, MODULES_MAX = 16 };

struct CUkern_st {
	struct object object;
	CUlibrary library;
	char name[128];
};

struct CUlib_st {
	struct object object;
	char *text;
	CUkernel kernels[KERNELS_MAX];
	unsigned kernel_count;
	struct {
		CUcontext context;
		unsigned long long id;
		CUmodule module;
	} modules[MODULES_MAX];
	unsigned module_count;
};

static CUresult library_module(CUlibrary library, CUcontext context, CUmodule *ret)
{
	CUresult r;

	for (unsigned i = 0; i < library->module_count; i++)
		if (library->modules[i].context == context && object_lives(library->modules[i].module, OBJECT_MODULE) &&
		    library->modules[i].id == context->id) {
			*ret = library->modules[i].module;
			return CUDA_SUCCESS;
		}
	if (library->module_count == MODULES_MAX)
		return CUDA_ERROR_OUT_OF_MEMORY;
	r = module_new(context, library->text, NULL, ret);
	if (r)
		return r;
	(*ret)->library = library;
	library->modules[library->module_count].context = context;
	library->modules[library->module_count].id = context->id;
	library->modules[library->module_count++].module = *ret;
	return CUDA_SUCCESS;
}

static CUresult library_kernel_function(CUcontext context, CUkernel kernel, CUfunction *ret)
{
	CUmodule module;
	CUresult r = library_module(kernel->library, context, &module);

	for (unsigned i = 0; !r && i < module->function_count; i++)
		if (strcmp(module->functions[i]->name, kernel->name) == 0) {
			*ret = module->functions[i];
			(*ret)->kernel = kernel;
			return CUDA_SUCCESS;
		}
	return r ? r : CUDA_ERROR_NOT_FOUND;
}

CUresult library_function(CUcontext context, CUfunction handle, CUfunction *ret)
{
	if (object_is(handle, OBJECT_KERNEL))
		return library_kernel_function(context, (CUkernel)handle, ret);
	if (!object_is(handle, OBJECT_FUNCTION))
		return CUDA_ERROR_INVALID_HANDLE;
	*ret = handle;
	return handle->object.context == context ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

/* What is in it is known at once; it is loaded in a context when that first needs it. */
static CUresult library_new(CUcontext context, const void *image, struct ptx_log *log, CUlibrary *ret)
{
	static const char nothing[] = ".version 6.0\n.target sm_50\n.address_size 64\n";
	CUlibrary library;
	CUmodule module;
	CUresult r = module_new(context, image, log, &module);

	/* What is no image at all is only seen when something of it is asked for. */
	if (r == CUDA_ERROR_INVALID_IMAGE)
		r = module_new(context, nothing, log, &module);
	if (r)
		return r;
	library = object_new(OBJECT_LIBRARY, sizeof(*library), NULL);
	library->text = strdup(module_text(image) ? module_text(image) : nothing);
	for (unsigned i = 0; i < module->function_count; i++) {
		CUkernel kernel = object_new(OBJECT_KERNEL, sizeof(*kernel), NULL);

		kernel->library = library;
		memcpy(kernel->name, module->functions[i]->name, sizeof(kernel->name));
		library->kernels[library->kernel_count++] = kernel;
	}
	module_free(module);
	*ret = library;
	return CUDA_SUCCESS;
}

/* They are loaded, and their managed variables found, where any context is; it need not be current. */
static CUresult library_enter(const char *name, CUcontext *ret)
{
	CUresult r = call_enter(name);

	if (r)
		return r;
	*ret = context_current();
	for (int i = 0; !*ret && device_get(i); i++)
		*ret = device_get(i)->primary;
	return *ret ? CUDA_SUCCESS : call_leave(CUDA_ERROR_INVALID_CONTEXT);
}

CUresult cuLibraryLoadData(CUlibrary *ret, const void *image, int *jit, void **jit_values, unsigned jit_count,
			   int *options, void **values, unsigned count)
{
	struct ptx_log info = {0}, error = {0};
	CUcontext context;
	CUresult r;

	r = library_enter(__func__, &context);
	if (r)
		return r;
	(void)options;
	(void)values;
	(void)count;
	LEAVE_IF(!ret || !image || (jit_count && (!jit || !jit_values)), CUDA_ERROR_INVALID_VALUE);
	jit_options(jit_count, jit, jit_values, &info, &error);
	r = library_new(context, image, &error, ret);
	jit_report(jit_count, jit, jit_values, &info, &error);
	LEAVE(r);
}

CUresult cuLibraryLoadFromFile(CUlibrary *ret, const char *path, int *jit, void **jit_values, unsigned jit_count,
			       int *options, void **values, unsigned count)
{
	void *image;
	CUresult r = module_read_file(path, &image, NULL);

	if (r)
		return r;
	r = cuLibraryLoadData(ret, image, jit, jit_values, jit_count, options, values, count);
	free(image);
	return r;
}

CUresult cuLibraryUnload(CUlibrary library)
{
	CUcontext context;

	CALL_CONTEXT(context);
	LEAVE_IF(!object_is(library, OBJECT_LIBRARY), CUDA_ERROR_INVALID_HANDLE);
	for (unsigned i = 0; i < library->module_count; i++)
		if (object_lives(library->modules[i].module, OBJECT_MODULE)) {
			context_drain(library->modules[i].context);
			module_free(library->modules[i].module);
		}
	for (unsigned i = 0; i < library->kernel_count; i++)
		object_free(library->kernels[i]);
	free(library->text);
	object_free(library);
	object_tell_late();
	LEAVE(CUDA_SUCCESS);
}

#define LIBRARY(library)       \
	CUcontext context;     \
	CALL_CONTEXT(context); \
	LEAVE_IF(!object_is(library, OBJECT_LIBRARY), CUDA_ERROR_INVALID_HANDLE)
#define KERNEL(kernel)         \
	CUcontext context;     \
	CALL_CONTEXT(context); \
	LEAVE_IF(!object_is(kernel, OBJECT_KERNEL), CUDA_ERROR_INVALID_HANDLE)

CUresult cuLibraryGetKernel(CUkernel *ret, CUlibrary library, const char *name)
{
	LIBRARY(library);
	LEAVE_IF(!ret || !name, CUDA_ERROR_INVALID_VALUE);
	for (unsigned i = 0; i < library->kernel_count; i++)
		if (strcmp(library->kernels[i]->name, name) == 0) {
			*ret = library->kernels[i];
			LEAVE(CUDA_SUCCESS);
		}
	LEAVE(CUDA_ERROR_NOT_FOUND);
}

CUresult cuLibraryGetKernelCount(unsigned *ret, CUlibrary library)
{
	LIBRARY(library);
	LEAVE_IF(!ret, CUDA_ERROR_INVALID_VALUE);
	*ret = library->kernel_count;
	LEAVE(CUDA_SUCCESS);
}

CUresult cuLibraryEnumerateKernels(CUkernel *ret, unsigned count, CUlibrary library)
{
	LIBRARY(library);
	LEAVE_IF(!ret || !count, CUDA_ERROR_INVALID_VALUE);
	for (unsigned i = 0; i < count; i++)
		ret[i] = i < library->kernel_count ? library->kernels[i] : NULL;
	LEAVE(CUDA_SUCCESS);
}

CUresult cuLibraryGetModule(CUmodule *ret, CUlibrary library)
{
	LIBRARY(library);
	LEAVE_IF(!ret, CUDA_ERROR_INVALID_VALUE);
	LEAVE(library_module(library, context, ret));
}

CUresult cuLibraryGetGlobal(CUdeviceptr *ret, size_t *ret_bytes, CUlibrary library, const char *name)
{
	CUmodule module;
	CUresult r;

	LIBRARY(library);
	LEAVE_IF(!name, CUDA_ERROR_INVALID_VALUE);
	r = library_module(library, context, &module);
	LEAVE(r ? r : module_global(module, name, ret, ret_bytes));
}

CUresult cuLibraryGetManaged(CUdeviceptr *ret, size_t *ret_bytes, CUlibrary library, const char *name)
{
	CUcontext context;
	CUmodule module;
	CUresult r = library_enter(__func__, &context);

	if (r)
		return r;
	LEAVE_IF(!object_is(library, OBJECT_LIBRARY), CUDA_ERROR_INVALID_HANDLE);
	LEAVE_IF((!ret && !ret_bytes) || !name, CUDA_ERROR_INVALID_VALUE);
	r = library_module(library, context, &module);
	LEAVE(r ? r : module_managed(module, name, ret, ret_bytes));
}

CUresult cuLibraryGetUnifiedFunction(void **ret, CUlibrary library, const char *name)
{
	LIBRARY(library);
	LEAVE_IF(!ret || !name, CUDA_ERROR_INVALID_VALUE);
	LEAVE(CUDA_ERROR_INVALID_VALUE);
}

CUresult cuKernelGetFunction(CUfunction *ret, CUkernel kernel)
{
	KERNEL(kernel);
	LEAVE_IF(!ret, CUDA_ERROR_INVALID_VALUE);
	LEAVE(library_kernel_function(context, kernel, ret));
}

CUresult cuKernelGetLibrary(CUlibrary *ret, CUkernel kernel)
{
	KERNEL(kernel);
	LEAVE_IF(!ret, CUDA_ERROR_INVALID_VALUE);
	*ret = kernel->library;
	LEAVE(CUDA_SUCCESS);
}
