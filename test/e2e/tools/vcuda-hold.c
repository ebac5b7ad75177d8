/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A CUDA program that takes memory of its first GPU: `vcuda-hold BYTES…` prints "devices=N", "total=BYTES", and the driver's
 * error for each amount that it asks for; then it reads lines of standard input, more amounts, until that ends. An amount
 * behind an h is page-locked memory of the host, one behind an f is written to.
 */

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct CUctx_st *CUcontext;
typedef unsigned long long CUdeviceptr;

static void *function(const char *name)
{
	static void *library;
	void *found;

	library = library ? library : dlopen("libcuda.so.1", RTLD_NOW);
	found = library ? dlsym(library, name) : NULL;
	if (!found) {
		printf("%s\n", dlerror());
		exit(EXIT_FAILURE);
	}
	return found;
}

static int fill(const char *amount)
{
	int (*allocate)(CUdeviceptr * ret, size_t bytes) = function("cuMemAlloc_v2");
	int (*set)(CUdeviceptr, unsigned char, size_t) = function("cuMemsetD8_v2");
	int (*wait)(void) = function("cuCtxSynchronize");
	const size_t bytes = strtoull(amount, NULL, 10);
	CUdeviceptr pointer = 0;
	int r = allocate(&pointer, bytes);

	if (r == 0)
		r = set(pointer, 1, bytes);
	return r == 0 ? wait() : r;
}

static void take(const char *amount)
{
	int (*allocate)(CUdeviceptr * ret, size_t bytes) = function("cuMemAlloc_v2");
	int (*lock)(void **ret, size_t bytes, unsigned flags) = function("cuMemHostAlloc");
	CUdeviceptr pointer = 0;
	void *locked = NULL;

	printf("%s: %d\n", amount,
	       amount[0] == 'h'   ? lock(&locked, strtoull(amount + 1, NULL, 10), 0)
	       : amount[0] == 'f' ? fill(amount + 1)
				  : allocate(&pointer, strtoull(amount, NULL, 10)));
	(void)fflush(stdout);
}

int main(int argc, char **argv)
{
	int (*init)(unsigned) = function("cuInit"), (*count)(int *) = function("cuDeviceGetCount");
	int (*total)(size_t *, int) = function("cuDeviceTotalMem_v2");
	int (*make)(CUcontext *, unsigned, int) = function("cuCtxCreate_v2");
	CUcontext context = NULL;
	char line[64];
	size_t bytes = 0;
	int r = init(0), devices = 0;

	if (r != 0) {
		printf("cuInit=%d\n", r);
		return EXIT_FAILURE;
	}
	(void)count(&devices);
	(void)total(&bytes, 0);
	printf("devices=%d\ntotal=%zu\n", devices, bytes);
	r = make(&context, 0, 0);
	if (r != 0)
		printf("cuCtxCreate=%d\n", r);
	for (int i = 1; i < argc; i++)
		take(argv[i]);
	(void)puts("ready");
	(void)fflush(stdout);
	while (fgets(line, sizeof(line), stdin))
		take(strtok(line, "\n") ? line : "0");
	return EXIT_SUCCESS;
}
