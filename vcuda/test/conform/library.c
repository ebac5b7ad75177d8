/* SPDX-License-Identifier: Apache-2.0 */

/* Libraries and kernels, which belong to no context. */

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"

static CUlibrary library_load(void)
{
	CUlibrary library = NULL;

	OK(cu.cuLibraryLoadData(&library, kernels_ptx, NULL, NULL, 0, NULL, NULL, 0));
	return library;
}

static CUkernel library_kernel(CUlibrary library, const char *name)
{
	CUkernel kernel = NULL;

	OK(cu.cuLibraryGetKernel(&kernel, library, name));
	return kernel;
}

static void library_launch(void)
{
	CUlibrary library = library_load();
	CUkernel kernel = library_kernel(library, "fill");
	CUdeviceptr out = check_alloc(4096);
	uint32_t value = 3, count = 8;
	CUfunction function = NULL;

	OK(cu.cuLaunchKernel((CUfunction)kernel, 1, 1, 1, 32, 1, 1, 0, NULL, PARAMETERS(&out, &value, &count), NULL));
	IS(3, check_word(out + 28));
	OK(cu.cuKernelGetFunction(&function, kernel));
	value = 4;
	OK(cu.cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, NULL, PARAMETERS(&out, &value, &count), NULL));
	IS(4, check_word(out));
	OK(cu.cuLibraryUnload(library));
	OK(cu.cuMemFree_v2(out));
}

static void library_missing(void)
{
	CUlibrary library = library_load();
	CUkernel kernel = NULL;
	CUdeviceptr pointer = 0;
	void *function = NULL;
	size_t size = 0;

	IS(500, cu.cuLibraryGetKernel(&kernel, library, "missing"));
	IS(500, cu.cuLibraryGetGlobal(&pointer, &size, library, "missing"));
	NOTE(cu.cuLibraryGetManaged(&pointer, &size, library, "missing"));
	NOTE(cu.cuLibraryGetUnifiedFunction(&function, library, "missing"));
	OK(cu.cuLibraryUnload(library));
}

static void library_global(void)
{
	CUlibrary library = library_load();
	CUdeviceptr pointer = 0;
	size_t size = 0;

	OK(cu.cuLibraryGetGlobal(&pointer, &size, library, "counter"));
	IS(4, (long long)size);
	IS(7, check_word(pointer));
	OK(cu.cuLibraryUnload(library));
}

static void library_attributes(void)
{
	CUlibrary library = library_load();
	CUkernel kernel = library_kernel(library, "small");
	size_t offset = 99, size = 99;
	int value = -1;

	OK(cu.cuKernelGetAttribute(&value, 0, kernel, 0));
	IS(128, value);
	OK(cu.cuKernelSetAttribute(8, 60000, kernel, 0));
	OK(cu.cuKernelGetAttribute(&value, 8, kernel, 0));
	NOTE(value);
	OK(cu.cuKernelSetCacheConfig(kernel, 1, 0));
	IS(101, cu.cuKernelGetAttribute(&value, 0, kernel, 44));
	OK(cu.cuKernelGetParamInfo(library_kernel(library, "saxpy"), 1, &offset, &size));
	NOTE(offset);
	NOTE(size);
	IS(1, cu.cuKernelGetParamInfo(kernel, 0, &offset, &size));
	OK(cu.cuLibraryUnload(library));
}

static void library_names(void)
{
	CUlibrary library = library_load(), of = NULL;
	CUkernel kernel = library_kernel(library, "reduce");
	const char *name = NULL;
	CUmodule own = NULL;
	CUfunction function = NULL;

	OK(cu.cuKernelGetName(&name, kernel));
	got_text(name);
	OK(cu.cuKernelGetLibrary(&of, kernel));
	TRUE(of == library);
	OK(cu.cuLibraryGetModule(&own, library));
	OK(cu.cuModuleGetFunction(&function, own, "reduce"));
	OK(cu.cuLibraryUnload(library));
}

static void library_enumerate(void)
{
	CUlibrary library = library_load();
	CUkernel kernels[64] = {NULL};
	unsigned count = 0, named = 0;

	OK(cu.cuLibraryGetKernelCount(&count, library));
	NOTE(count);
	OK(cu.cuLibraryEnumerateKernels(kernels, count < 64 ? count : 64, library));
	for (unsigned i = 0; i < count && i < 64; i++)
		named += kernels[i] != NULL;
	TRUE(named == count);
	OK(cu.cuLibraryUnload(library));
}

static void library_file(void)
{
	char path[] = "/tmp/conform-XXXXXX";
	int fd = mkstemp(path);
	CUlibrary library = NULL;

	NOTE(write(fd, kernels_ptx, strlen(kernels_ptx)) == (ssize_t)strlen(kernels_ptx));
	(void)close(fd);
	OK(cu.cuLibraryLoadFromFile(&library, path, NULL, NULL, 0, NULL, NULL, 0));
	(void)library_kernel(library, "nop");
	OK(cu.cuLibraryUnload(library));
	(void)unlink(path);
	NOTE(cu.cuLibraryLoadFromFile(&library, "/nonexistent/file", NULL, NULL, 0, NULL, NULL, 0));
}

static void library_errors(void)
{
	CUlibrary library = NULL;

	IS(1, cu.cuLibraryLoadData(NULL, kernels_ptx, NULL, NULL, 0, NULL, NULL, 0));
	NOTE(cu.cuLibraryLoadData(&library, NULL, NULL, NULL, 0, NULL, NULL, 0));
	NOTE(cu.cuLibraryLoadData(&library, "this is no image at all, but is long enough to be looked at", NULL, NULL,
				  0, NULL, NULL, 0));
}

/* A context made later has what was loaded before. */
static void library_other_context(void)
{
	CUlibrary library = library_load();
	CUkernel kernel = library_kernel(library, "nop");
	CUcontext other = NULL;

	OK(cu.cuCtxCreate_v2(&other, 0, 0));
	OK(cu.cuLaunchKernel((CUfunction)kernel, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
	OK(cu.cuCtxSynchronize());
	OK(cu.cuCtxDestroy_v2(other));
	OK(cu.cuLaunchKernel((CUfunction)kernel, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
	OK(cu.cuCtxSynchronize());
	OK(cu.cuLibraryUnload(library));
}

const struct check library_checks[] = {
	{"a kernel launched by its handle and by its function", library_launch, false},
	{"names that are not there", library_missing, false},
	{"variables", library_global, false},
	{"attributes and parameters", library_attributes, false},
	{"name and library of a kernel", library_names, false},
	{"kernels of a library", library_enumerate, false},
	{"from a file", library_file, false},
	{"nonsense", library_errors, true},
	{"in a context made later", library_other_context, false},
	END,
};
