/* SPDX-License-Identifier: Apache-2.0 */

/* Managed variables of modules (__managed__): the host reads and writes them at the address that kernels use. */

#include <string.h>

#include "check.h"

enum { WORDS = 16384, THREADS = 32 };

/* "raise" has each thread add 1 to the sum, and set a word of its own. */
static const char variable_ptx[] =
	".version 6.0\n.target sm_50\n.address_size 64\n"
	".visible .global .attribute(.managed) .align 4 .u32 managed_sum = 5;\n"
	".visible .global .attribute(.managed) .align 4 .b8 managed_words[65536];\n"
	".visible .global .align 4 .u32 plain = 7;\n"
	".visible .entry raise()\n{\n"
	"\t.reg .u32 %x, %t, %v;\n\t.reg .u64 %a, %w, %o;\n"
	"\tmov.u64 %a, managed_sum;\n\tatom.global.add.u32 %x, [%a], 1;\n"
	"\tmov.u32 %t, %tid.x;\n\tmov.u64 %w, managed_words;\n\tmul.wide.u32 %o, %t, 4;\n"
	"\tadd.u64 %w, %w, %o;\n\tadd.u32 %v, %t, 100;\n\tst.global.u32 [%w], %v;\n\tret;\n}\n";

static CUmodule own;
static volatile uint32_t *sum, *words;
static volatile uint32_t nothing[WORDS]; /* where there is none */

static volatile uint32_t *variable_find(const char *name, size_t right)
{
	CUdeviceptr pointer = 0;
	size_t size = 0;

	OK(cu.cuModuleGetGlobal_v2(&pointer, &size, own, name));
	IS((long long)right, (long long)size);
	return pointer ? (volatile uint32_t *)(uintptr_t)pointer : nothing;
}

static CUfunction variable_load(void)
{
	CUfunction function = NULL;

	OK(cu.cuModuleLoadData(&own, variable_ptx));
	OK(cu.cuModuleGetFunction(&function, own, "raise"));
	sum = variable_find("managed_sum", 4);
	words = variable_find("managed_words", sizeof(uint32_t) * WORDS);
	return function;
}

static CUresult variable_raise(CUfunction function, CUstream stream)
{
	return cu.cuLaunchKernel(function, 1, 1, 1, THREADS, 1, 1, 0, stream, NULL, NULL);
}

static void variable_shared(void)
{
	CUfunction function = variable_load();

	IS(5, sum[0]);
	IS(0, words[WORDS - 1]);
	sum[0] = 7;
	words[THREADS] = 4711;
	OK(variable_raise(function, NULL));
	OK(cu.cuCtxSynchronize());
	IS(7 + THREADS, sum[0]);
	IS(100, words[0]);
	IS(99 + THREADS, words[THREADS - 1]);
	IS(4711, words[THREADS]);
	words[0] = 1;
	OK(variable_raise(function, NULL));
	OK(variable_raise(function, NULL));
	OK(cu.cuStreamSynchronize(NULL));
	IS(7 + 3 * THREADS, sum[0]);
	IS(100, words[0]);
	OK(cu.cuModuleUnload(own));
}

static void variable_events(void)
{
	CUfunction function = variable_load();
	CUstream stream = NULL;
	CUevent event = NULL;

	OK(cu.cuStreamCreate(&stream, 1));
	OK(cu.cuEventCreate(&event, 2));
	sum[0] = 0;
	OK(variable_raise(function, stream));
	OK(cu.cuEventRecord(event, stream));
	OK(cu.cuEventSynchronize(event));
	IS(THREADS, sum[0]);
	sum[0] = 1;
	OK(variable_raise(function, stream));
	while (cu.cuStreamQuery(stream) == CUDA_ERROR_NOT_READY)
		;
	IS(1 + THREADS, sum[0]);
	sum[0] = 2;
	OK(variable_raise(function, stream));
	OK(cu.cuEventRecord(event, stream));
	while (cu.cuEventQuery(event) == CUDA_ERROR_NOT_READY)
		;
	IS(2 + THREADS, sum[0]);
	OK(cu.cuEventDestroy_v2(event));
	OK(cu.cuStreamDestroy_v2(stream));
	OK(cu.cuModuleUnload(own));
}

static void variable_copies(void)
{
	uint32_t local[] = {1, 2, 3, 4};
	CUdeviceptr device = check_alloc(64), at;

	(void)variable_load();
	at = (uintptr_t)words;
	OK(cu.cuMemcpyHtoD_v2(at + 4, local, sizeof(local)));
	OK(cu.cuCtxSynchronize());
	IS(0, words[0]);
	IS(4, words[4]);
	words[2] = 22;
	OK(cu.cuMemcpyDtoD_v2(device, at, 32));
	IS(22, check_word(device + 8));
	words[3] = 33;
	OK(cu.cuMemcpyDtoH_v2(local, at + 8, 8));
	IS(22, local[0]);
	IS(33, local[1]);
	OK(cu.cuMemsetD32_v2(at + 16, 9, 1000));
	OK(cu.cuCtxSynchronize());
	IS(33, words[3]);
	IS(9, words[4]);
	IS(9, words[1003]);
	IS(0, words[1004]);
	for (uint32_t i = 0; i < WORDS; i++)
		words[i] = 3 * i;
	OK(cu.cuMemcpy(device, at + 4 * (WORDS - 4), 16));
	IS(3 * (WORDS - 1), check_word(device + 12));
	OK(cu.cuModuleUnload(own));
	OK(cu.cuMemFree_v2(device));
}

static void variable_captured(void)
{
	CUfunction function = variable_load();
	CUstream stream = NULL;
	CUgraphExec exec = NULL;
	CUgraph graph = NULL;

	OK(cu.cuStreamCreate(&stream, 1));
	sum[0] = 10;
	OK(cu.cuStreamBeginCapture_v2(stream, 0));
	OK(variable_raise(function, stream));
	sum[0] = 20;
	OK(cu.cuStreamEndCapture(stream, &graph));
	OK(cu.cuGraphInstantiateWithFlags(&exec, graph, 0));
	OK(cu.cuGraphLaunch(exec, stream));
	OK(cu.cuStreamSynchronize(stream));
	IS(20 + THREADS, sum[0]);
	sum[0] = 30;
	OK(cu.cuGraphLaunch(exec, stream));
	OK(cu.cuStreamSynchronize(stream));
	IS(30 + THREADS, sum[0]);
	OK(cu.cuGraphExecDestroy(exec));
	OK(cu.cuGraphDestroy(graph));
	OK(cu.cuStreamDestroy_v2(stream));
	OK(cu.cuModuleUnload(own));
}

static void variable_attributes(void)
{
	static const int numbers[] = {2, 8, 9, 10, 13};
	CUdeviceptr base = 0;
	size_t size = 0;

	(void)variable_load();
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		int value = 77;

		OK(cu.cuPointerGetAttribute(&value, numbers[i], (uintptr_t)sum));
		NOTE(value);
	}
	OK(cu.cuPointerGetAttribute(&base, 3, (uintptr_t)(sum)));
	TRUE(base == (uintptr_t)sum);
	NOTE(cu.cuPointerGetAttribute(&base, 4, (uintptr_t)(sum)));
	OK(cu.cuMemGetAddressRange_v2(&base, &size, (uintptr_t)(words + 5)));
	TRUE(base <= (uintptr_t)words);
	OK(cu.cuModuleUnload(own));
}

static void variable_library(void)
{
	CUlibrary library = NULL;
	CUkernel kernel = NULL;
	CUdeviceptr pointer = 0, other = 0;
	size_t size = 0;

	OK(cu.cuLibraryLoadData(&library, variable_ptx, NULL, NULL, 0, NULL, NULL, 0));
	OK(cu.cuLibraryGetKernel(&kernel, library, "raise"));
	OK(cu.cuLibraryGetManaged(&pointer, &size, library, "managed_sum"));
	IS(4, (long long)size);
	OK(cu.cuLibraryGetManaged(&other, NULL, library, "managed_sum"));
	TRUE(other == pointer);
	NOTE(cu.cuLibraryGetManaged(&other, &size, library, "plain"));
	NOTE(cu.cuLibraryGetManaged(&other, &size, library, "missing"));
	NOTE(cu.cuLibraryGetGlobal(&other, &size, library, "managed_sum"));
	IS(1, cu.cuLibraryGetManaged(NULL, NULL, library, "managed_sum"));
	IS(1, cu.cuLibraryGetManaged(&other, &size, library, NULL));
	sum = pointer ? (volatile uint32_t *)(uintptr_t)pointer : nothing;
	IS(5, sum[0]);
	sum[0] = 50;
	OK(cu.cuLaunchKernel((CUfunction)kernel, 1, 1, 1, THREADS, 1, 1, 0, NULL, NULL, NULL));
	OK(cu.cuCtxSynchronize());
	IS(50 + THREADS, sum[0]);
	OK(cu.cuLibraryUnload(library));
}

/* As the CUDA runtime begins: a context is there, and not current. */
static void variable_without_context(void)
{
	CUlibrary library = NULL;
	CUcontext now = NULL;
	CUkernel kernel = NULL;
	CUdeviceptr pointer = 0;
	size_t size = 0;

	OK(cu.cuCtxSetCurrent(NULL));
	OK(cu.cuLibraryLoadData(&library, variable_ptx, NULL, NULL, 0, NULL, NULL, 0));
	OK(cu.cuLibraryGetManaged(&pointer, &size, library, "managed_sum"));
	IS(4, (long long)size);
	OK(cu.cuCtxGetCurrent(&now));
	TRUE(now == NULL);
	OK(cu.cuCtxSetCurrent(context));
	sum = pointer ? (volatile uint32_t *)(uintptr_t)pointer : nothing;
	IS(5, sum[0]);
	sum[0] = 60;
	OK(cu.cuLibraryGetKernel(&kernel, library, "raise"));
	OK(cu.cuLaunchKernel((CUfunction)kernel, 1, 1, 1, THREADS, 1, 1, 0, NULL, NULL, NULL));
	OK(cu.cuCtxSynchronize());
	IS(60 + THREADS, sum[0]);
	OK(cu.cuLibraryUnload(library));
}

/* Each time they begin as the image has them. */
static void variable_again(void)
{
	for (int i = 0; i < 5; i++) {
		CUfunction function = variable_load();

		OK(variable_raise(function, NULL));
		OK(cu.cuCtxSynchronize());
		IS(5 + THREADS, sum[0]);
		OK(cu.cuModuleUnload(own));
	}
}

const struct check variable_checks[] = {
	{"read and written by both", variable_shared, false},
	{"behind events and questions", variable_events, false},
	{"copies and filling", variable_copies, false},
	{"in a graph", variable_captured, false},
	{"attributes", variable_attributes, false},
	{"of a library", variable_library, false},
	{"of a library, without a context", variable_without_context, true},
	{"loaded again and again", variable_again, false},
	END,
};
