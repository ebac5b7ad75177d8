/* SPDX-License-Identifier: Apache-2.0 */

/* Launches: parameters, what is refused at once, and what breaks the context. */

#include <stdlib.h>
#include <string.h>

#include "check.h"

static CUresult launch_shape(const char *name, unsigned x, unsigned y, unsigned z, unsigned block_x, unsigned block_y,
			     unsigned block_z)
{
	return cu.cuLaunchKernel(check_function(name), x, y, z, block_x, block_y, block_z, 0, NULL, NULL, NULL);
}

static void launch_none(void)
{
	OK(check_launch("nop", 1, NULL, NULL));
	OK(cu.cuCtxSynchronize());
}

static void launch_add(void)
{
	CUdeviceptr a = check_alloc(4000), b = check_alloc(4000), c = check_alloc(4000);
	float x[1000], y[1000], z[1000];
	uint32_t count = 1000;
	int wrong = 0;

	for (int i = 0; i < 1000; i++) {
		x[i] = (float)i;
		y[i] = (float)(2 * i);
	}
	OK(cu.cuMemcpyHtoD_v2(a, x, 4000));
	OK(cu.cuMemcpyHtoD_v2(b, y, 4000));
	OK(cu.cuLaunchKernel(check_function("vectorAdd"), 8, 1, 1, 128, 1, 1, 0, NULL, PARAMETERS(&a, &b, &c, &count),
			     NULL));
	OK(cu.cuMemcpyDtoH_v2(z, c, 4000));
	for (int i = 0; i < 1000; i++)
		wrong += z[i] != (float)(3 * i);
	IS(0, wrong);
	OK(cu.cuMemFree_v2(a));
	OK(cu.cuMemFree_v2(b));
	OK(cu.cuMemFree_v2(c));
}

static void launch_saxpy(void)
{
	CUdeviceptr x = check_alloc(400), y = check_alloc(400);
	float values[100], alpha = 0.5f;
	uint32_t count = 100;

	for (int i = 0; i < 100; i++)
		values[i] = (float)(4 * i);
	OK(cu.cuMemcpyHtoD_v2(x, values, 400));
	OK(cu.cuMemcpyHtoD_v2(y, values, 400));
	OK(check_launch("saxpy", 128, NULL, PARAMETERS(&alpha, &x, &y, &count)));
	OK(cu.cuMemcpyDtoH_v2(values, y, 400));
	NOTE(values[1]);
	NOTE(values[99]);
	OK(cu.cuMemFree_v2(x));
	OK(cu.cuMemFree_v2(y));
}

static void launch_matmul(void)
{
	enum { N = 32 };
	CUdeviceptr a = check_alloc(N * N * 4), b = check_alloc(N * N * 4), c = check_alloc(N * N * 4);
	float *values = malloc(N * N * 4);
	uint32_t count = N;

	for (int i = 0; i < N * N; i++)
		values[i] = (float)(i % 7);
	OK(cu.cuMemcpyHtoD_v2(a, values, N * N * 4));
	OK(cu.cuMemcpyHtoD_v2(b, values, N * N * 4));
	OK(cu.cuLaunchKernel(check_function("matmul"), N * N / 256, 1, 1, 256, 1, 1, 0, NULL,
			     PARAMETERS(&a, &b, &c, &count), NULL));
	OK(cu.cuMemcpyDtoH_v2(values, c, N * N * 4));
	NOTE(values[0]);
	NOTE(values[N * N - 1]);
	OK(cu.cuMemFree_v2(a));
	OK(cu.cuMemFree_v2(b));
	OK(cu.cuMemFree_v2(c));
	free(values);
}

static void launch_reduce(void)
{
	CUdeviceptr in = check_alloc(40000), out = check_alloc(4);
	uint32_t count = 10000;

	OK(cu.cuMemsetD32_v2(in, 3, 10000));
	OK(cu.cuMemsetD32_v2(out, 0, 1));
	OK(cu.cuLaunchKernel(check_function("reduce"), 40, 1, 1, 256, 1, 1, 0, NULL, PARAMETERS(&in, &out, &count),
			     NULL));
	IS(30000, check_word(out));
	OK(cu.cuMemFree_v2(in));
	OK(cu.cuMemFree_v2(out));
}

static void launch_many(void)
{
	CUdeviceptr out = check_alloc(4);
	void *parameters[32] = {NULL};
	uint32_t words[31];

	for (uint32_t i = 0; i < 31; i++) {
		words[i] = 1u << i;
		parameters[i] = &words[i];
	}
	parameters[31] = &out;
	OK(check_launch("many", 1, NULL, parameters));
	IS(0x7fffffff, check_word(out));
	OK(cu.cuMemFree_v2(out));
}

static void launch_structure(void)
{
	static const struct {
		const char *name;
		size_t size;
	} sizes[] = {{"structure1", 1}, {"structure12", 12}, {"structure4000", 4000}};
	unsigned char what[4000], back[4000];
	CUdeviceptr out = check_alloc(4000);

	for (unsigned i = 0; i < sizeof(what); i++)
		what[i] = (unsigned char)(i * 13 + 5);
	for (size_t i = 0; i < 3; i++) {
		memset(back, 0, sizeof(back));
		OK(check_launch(sizes[i].name, 1, NULL, PARAMETERS(what, &out)));
		OK(cu.cuMemcpyDtoH_v2(back, out, sizes[i].size));
		TRUE(memcmp(what, back, sizes[i].size) == 0);
	}
	OK(cu.cuMemFree_v2(out));
}

static void launch_extra(void)
{
	struct {
		CUdeviceptr pointer;
		uint32_t value, count;
	} buffer = {check_alloc(64), 17, 4};
	size_t size = sizeof(buffer);
	void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &buffer, CU_LAUNCH_PARAM_BUFFER_SIZE, &size, NULL};
	void *both[] = {&buffer.pointer, &buffer.value, &buffer.count};

	OK(cu.cuLaunchKernel(check_function("fill"), 1, 1, 1, 32, 1, 1, 0, NULL, NULL, extra));
	IS(17, check_word(buffer.pointer + 12));
	NOTE(cu.cuLaunchKernel(check_function("fill"), 1, 1, 1, 32, 1, 1, 0, NULL, both, extra));
	OK(cu.cuMemFree_v2(buffer.pointer));
}

static void launch_where(void)
{
	CUdeviceptr out = check_alloc(24);
	uint32_t words[6] = {0};

	OK(cu.cuLaunchKernel(check_function("where"), 5, 6, 7, 2, 3, 4, 0, NULL, PARAMETERS(&out), NULL));
	OK(cu.cuMemcpyDtoH_v2(words, out, 24));
	for (int i = 0; i < 6; i++)
		NOTE(words[i]);
	OK(cu.cuMemFree_v2(out));
}

static void launch_shared(void)
{
	CUdeviceptr words = check_alloc(256);
	uint32_t values[64];

	for (uint32_t i = 0; i < 64; i++)
		values[i] = i;
	OK(cu.cuMemcpyHtoD_v2(words, values, 256));
	OK(cu.cuLaunchKernel(check_function("reverse"), 2, 1, 1, 32, 1, 1, 128, NULL, PARAMETERS(&words), NULL));
	IS(31, check_word(words));
	IS(0, check_word(words + 31 * 4));
	IS(63, check_word(words + 32 * 4));
	OK(cu.cuMemFree_v2(words));
}

static void launch_too_many_threads(void)
{
	IS(1, launch_shape("nop", 1, 1, 1, 1025, 1, 1));
	IS(1, launch_shape("nop", 1, 1, 1, 32, 33, 1));
	IS(1, launch_shape("nop", 1, 1, 1, 1, 1, 65));
	NOTE(launch_shape("small", 1, 1, 1, 129, 1, 1));
	OK(launch_shape("small", 1, 1, 1, 128, 1, 1));
	OK(cu.cuCtxSynchronize());
}

static void launch_empty(void)
{
	IS(1, launch_shape("nop", 0, 1, 1, 1, 1, 1));
	IS(1, launch_shape("nop", 1, 1, 1, 0, 1, 1));
	IS(1, launch_shape("nop", 1, 0, 1, 1, 1, 1));
	IS(1, launch_shape("nop", 1, 65536, 1, 1, 1, 1));
	IS(1, launch_shape("nop", 1, 1, 65536, 1, 1, 1));
	OK(cu.cuCtxSynchronize());
}

static void launch_too_much_shared(void)
{
	CUfunction function = check_function("nop");

	OK(cu.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 49152, NULL, NULL, NULL));
	IS(1, cu.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 49153, NULL, NULL, NULL));
	IS(1, cu.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 1 << 30, NULL, NULL, NULL));
	OK(cu.cuFuncSetAttribute(function, 8, 65536));
	OK(cu.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 65536, NULL, NULL, NULL));
	OK(cu.cuCtxSynchronize());
}

static void launch_null(void)
{
	NOTE(cu.cuLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
	OK(cu.cuCtxSynchronize());
}

static void launch_config(void)
{
	CUdeviceptr out = check_alloc(64);
	uint32_t value = 8, count = 4;
	CUlaunchConfig config = {1, 1, 1, 32, 1, 1, 0, NULL, NULL, 0};

	OK(cu.cuLaunchKernelEx(&config, check_function("fill"), PARAMETERS(&out, &value, &count), NULL));
	IS(8, check_word(out + 12));
	config.block_x = 2000;
	IS(1, cu.cuLaunchKernelEx(&config, check_function("nop"), NULL, NULL));
	IS(1, cu.cuLaunchKernelEx(NULL, check_function("nop"), NULL, NULL));
	OK(cu.cuMemFree_v2(out));
}

static void launch_attributes(void)
{
	CUlaunchAttribute attributes[] = {{.id = 2, .value = {.cooperative = 1}}};
	CUlaunchConfig config = {1, 1, 1, 32, 1, 1, 0, NULL, attributes, 1};

	OK(cu.cuLaunchKernelEx(&config, check_function("nop"), NULL, NULL));
	OK(cu.cuCtxSynchronize());
}

static void launch_cooperative(void)
{
	CUdeviceptr out = check_alloc(64);
	uint32_t value = 8, count = 4;

	OK(cu.cuLaunchCooperativeKernel(check_function("fill"), 1, 1, 1, 32, 1, 1, 0, NULL,
					PARAMETERS(&out, &value, &count)));
	IS(8, check_word(out));
	IS(720, cu.cuLaunchCooperativeKernel(check_function("nop"), 1000000, 1, 1, 32, 1, 1, 0, NULL, NULL));
	OK(cu.cuMemFree_v2(out));
}

/* After it every call says so. */
static void launch_sticky(const char *name)
{
	CUdeviceptr pointer = check_alloc(4096);
	size_t free_bytes, total;
	CUcontext current = NULL;
	CUmodule loaded = NULL;
	CUstream stream = NULL;
	CUdevice device;
	char text[4];

	OK(check_launch(name, 1, NULL, NULL));
	NOTE(cu.cuCtxSynchronize());
	NOTE(cu.cuCtxSynchronize());
	NOTE(cu.cuMemAlloc_v2(&pointer, 4096));
	NOTE(cu.cuMemFree_v2(pointer));
	NOTE(cu.cuMemcpyDtoH_v2(text, pointer, 4));
	NOTE(cu.cuStreamCreate(&stream, 0));
	NOTE(cu.cuStreamSynchronize(NULL));
	NOTE(cu.cuStreamQuery(NULL));
	NOTE(check_launch("nop", 1, NULL, NULL));
	NOTE(cu.cuModuleLoadData(&loaded, kernels_ptx));
	NOTE(cu.cuMemGetInfo_v2(&free_bytes, &total));
	OK(cu.cuCtxGetCurrent(&current));
	TRUE(current == context);
	OK(cu.cuCtxGetDevice(&device));
	OK(cu.cuDeviceGetCount(&device));
}

static void launch_trap(void)
{
	launch_sticky("trap");
}

static void launch_fault(void)
{
	launch_sticky("fault");
}

static void launch_fault_event(void)
{
	CUevent event = NULL;
	CUresult r;

	OK(cu.cuEventCreate(&event, 0));
	OK(check_launch("fault", 1, NULL, NULL));
	/* The fault may be before the call or behind it. */
	r = cu.cuEventRecord(event, NULL);
	NOTE(r == 0 || r == 700);
	NOTE(cu.cuEventSynchronize(event));
	NOTE(cu.cuEventQuery(event));
	NOTE(cu.cuEventDestroy_v2(event));
}

/* A process that had an error can have a context again. */
static void launch_fault_reset(void)
{
	OK(check_launch("fault", 1, NULL, NULL));
	IS(700, cu.cuCtxSynchronize());
	NOTE(cu.cuDevicePrimaryCtxReset_v2(0));
}

/* An error of a call is no error of the context. */
static void launch_not_sticky(void)
{
	CUdeviceptr pointer = 0;

	IS(1, cu.cuMemAlloc_v2(&pointer, 0));
	IS(1, launch_shape("nop", 1, 1, 1, 5000, 1, 1));
	IS(2, cu.cuMemAlloc_v2(&pointer, (size_t)1 << 50));
	OK(check_launch("nop", 1, NULL, NULL));
	OK(cu.cuCtxSynchronize());
}

const struct check launch_checks[] = {
	{"no parameters", launch_none, false},
	{"vectors added", launch_add, false},
	{"parameters of two sizes", launch_saxpy, false},
	{"matrices multiplied", launch_matmul, false},
	{"a sum by all threads", launch_reduce, false},
	{"32 parameters", launch_many, false},
	{"structures of 1, 12 and 4000 bytes", launch_structure, false},
	{"parameters in one buffer", launch_extra, true},
	{"grid and block arrive", launch_where, false},
	{"shared memory", launch_shared, false},
	{"too many threads", launch_too_many_threads, false},
	{"empty grids and too large ones", launch_empty, false},
	{"too much shared memory", launch_too_much_shared, true},
	{"no function", launch_null, true},
	{"by a configuration", launch_config, false},
	{"with attributes", launch_attributes, false},
	{"cooperative", launch_cooperative, false},
	{"a trap stays", launch_trap, true},
	{"an illegal address stays", launch_fault, true},
	{"events after an illegal address", launch_fault_event, true},
	{"reset after an illegal address", launch_fault_reset, true},
	{"errors of calls do not stay", launch_not_sticky, false},
	END,
};
