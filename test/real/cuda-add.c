/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A CUDA program as users write them, without the toolkit that they need for it: it loads the driver by its SONAME, compiles
 * a kernel from PTX, adds two vectors on every GPU it sees, and checks the sums.
 *
 *	cuda-add            "driver=13.0", and for each GPU "GPU-…: NVIDIA H200: 1048576 sums are right"
 */

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = 1 << 20, BLOCK = 256, GPUS_MAX = 64 };

/* Of cuda.h: handles are pointers, device pointers 64 bits, results and devices ints. */
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef unsigned long long CUdeviceptr;

static const char kernel[] = ".version 6.0\n"
			     ".target sm_60\n"
			     ".address_size 64\n"
			     ".visible .entry add(.param .u64 pa, .param .u64 pb, .param .u64 pc, .param .u32 pn)\n"
			     "{\n"
			     "	.reg .pred %p;\n"
			     "	.reg .b32 %n, %i, %b, %t, %x, %y;\n"
			     "	.reg .b64 %a, %e, %c, %o;\n"
			     "	ld.param.u64 %a, [pa];\n"
			     "	ld.param.u64 %e, [pb];\n"
			     "	ld.param.u64 %c, [pc];\n"
			     "	ld.param.u32 %n, [pn];\n"
			     "	mov.u32 %b, %ctaid.x;\n"
			     "	mov.u32 %i, %ntid.x;\n"
			     "	mov.u32 %t, %tid.x;\n"
			     "	mad.lo.s32 %i, %b, %i, %t;\n"
			     "	setp.ge.u32 %p, %i, %n;\n"
			     "	@%p bra done;\n"
			     "	mul.wide.u32 %o, %i, 4;\n"
			     "	cvta.to.global.u64 %a, %a;\n"
			     "	cvta.to.global.u64 %e, %e;\n"
			     "	cvta.to.global.u64 %c, %c;\n"
			     "	add.s64 %a, %a, %o;\n"
			     "	add.s64 %e, %e, %o;\n"
			     "	add.s64 %c, %c, %o;\n"
			     "	ld.global.u32 %x, [%a];\n"
			     "	ld.global.u32 %y, [%e];\n"
			     "	add.u32 %x, %x, %y;\n"
			     "	st.global.u32 [%c], %x;\n"
			     "done:\n"
			     "	ret;\n"
			     "}\n";

/* Name in the library, result and arguments. */
#define FUNCTIONS(X)                                                                                                   \
	X(init, "cuInit", (unsigned flags))                                                                            \
	X(driver_version, "cuDriverGetVersion", (int *version))                                                        \
	X(device_count, "cuDeviceGetCount", (int *count))                                                              \
	X(device_get, "cuDeviceGet", (int *device, int ordinal))                                                       \
	X(device_name, "cuDeviceGetName", (char *name, int size, int device))                                          \
	X(device_uuid, "cuDeviceGetUuid", (unsigned char uuid[16], int device))                                        \
	X(context_retain, "cuDevicePrimaryCtxRetain", (CUcontext * context, int device))                               \
	X(context_set, "cuCtxSetCurrent", (CUcontext context))                                                         \
	X(synchronize, "cuCtxSynchronize", (void))                                                                     \
	X(allocate, "cuMemAlloc_v2", (CUdeviceptr * memory, size_t size))                                              \
	X(to_device, "cuMemcpyHtoD_v2", (CUdeviceptr to, const void *from, size_t size))                               \
	X(to_host, "cuMemcpyDtoH_v2", (void *to, CUdeviceptr from, size_t size))                                       \
	X(module_load, "cuModuleLoadData", (CUmodule * module, const void *image))                                     \
	X(module_function, "cuModuleGetFunction", (CUfunction * function, CUmodule module, const char *name))          \
	X(launch, "cuLaunchKernel",                                                                                    \
	  (CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y, \
	   unsigned block_z, unsigned shared, void *stream, void **parameters, void **extra))

static struct {
#define X(member, symbol, arguments) int(*member) arguments;
	FUNCTIONS(X)
#undef X
} cuda;

static int load(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW);
	int missing = 0;

	if (!library) {
		printf("%s\n", dlerror());
		return -1;
	}
#define X(member, symbol, arguments)                            \
	cuda.member = (int(*) arguments)dlsym(library, symbol); \
	missing |= !cuda.member && printf("libcuda.so.1 has no %s\n", symbol) > 0;
	FUNCTIONS(X)
#undef X
	return missing ? -1 : 0;
}

static int failed(const char *what, int result)
{
	if (result != 0)
		printf("%s: CUDA error %d\n", what, result);
	return result != 0;
}

static unsigned *make_vector(unsigned factor)
{
	unsigned *vector = malloc(COUNT * sizeof(*vector));

	for (unsigned i = 0; vector && i < COUNT; i++)
		vector[i] = i * factor;
	return vector;
}

static int run_kernel(const unsigned *a, const unsigned *b, unsigned *c)
{
	CUdeviceptr memory[3];
	CUfunction function;
	unsigned count = COUNT;
	CUmodule module;
	void *parameters[] = {&memory[0], &memory[1], &memory[2], &count};

	for (int i = 0; i < 3; i++)
		if (failed("allocate", cuda.allocate(&memory[i], COUNT * sizeof(*a))))
			return -1;
	if (failed("compile", cuda.module_load(&module, kernel)) ||
	    failed("function", cuda.module_function(&function, module, "add")) ||
	    failed("copy", cuda.to_device(memory[0], a, COUNT * sizeof(*a))) ||
	    failed("copy", cuda.to_device(memory[1], b, COUNT * sizeof(*b))) ||
	    failed("launch", cuda.launch(function, COUNT / BLOCK, 1, 1, BLOCK, 1, 1, 0, NULL, parameters, NULL)) ||
	    failed("run", cuda.synchronize()) || failed("copy back", cuda.to_host(c, memory[2], COUNT * sizeof(*c))))
		return -1;
	return 0;
}

static int add_vectors(int device)
{
	unsigned *a = make_vector(3), *b = make_vector(5), *c = calloc(COUNT, sizeof(*c));
	CUcontext context;

	if (!a || !b || !c || failed("context", cuda.context_retain(&context, device)) ||
	    failed("context", cuda.context_set(context)) || run_kernel(a, b, c) < 0)
		return -1;
	for (unsigned i = 0; i < COUNT; i++)
		if (c[i] != 8 * i) {
			printf("sum %u is %u\n", i, c[i]);
			return -1;
		}
	free(a);
	free(b);
	free(c);
	return 0;
}

static void print_uuid(int device)
{
	unsigned char uuid[16] = {0};

	(void)cuda.device_uuid(uuid, device);
	printf("GPU-");
	for (int i = 0; i < 16; i++)
		printf("%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", uuid[i]);
}

int main(void)
{
	int version = 0, count = 0;

	if (load() < 0 || failed("cuInit", cuda.init(0)) || failed("version", cuda.driver_version(&version)) ||
	    failed("count", cuda.device_count(&count)))
		return 1;
	printf("driver=%d.%d\n", version / 1000, version % 1000 / 10);
	for (int i = 0; i < count && i < GPUS_MAX; i++) {
		char name[128] = "";
		int device;

		if (failed("device", cuda.device_get(&device, i)) ||
		    failed("name", cuda.device_name(name, sizeof(name), device)) || add_vectors(device) < 0)
			return 1;
		print_uuid(device);
		printf(": %s: %d sums are right\n", name, COUNT);
	}
	return count > 0 ? 0 : 1;
}
