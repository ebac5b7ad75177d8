/* SPDX-License-Identifier: Apache-2.0 */

/* Two GPUs, or where there is but one, two contexts of it: what one thread waits for in the one does not stop the other. */

#include <pthread.h>

#include "check.h"

enum { MOMENT_NS = 50000000 };

/* The second context, with a stream that waits for *gate, and what a thread ends there meanwhile. */
static struct {
	CUcontext context;
	CUmodule module;
	CUstream stream;
	CUdeviceptr memory;
	void *locked;
	volatile uint32_t *gate;
} other;

static CUdevice pair_device(void)
{
	int count = 1;

	(void)cu.cuDeviceGetCount(&count);
	return count > 1;
}

static void pair_begin(void)
{
	CUfunction gate = NULL, functions[64];
	unsigned count = 0;

	check_load();
	other.gate = check_pinned(4096);
	OK(cu.cuCtxCreate_v2(&other.context, 0, pair_device()));
	OK(cu.cuModuleLoadData(&other.module, kernels_ptx));
	(void)cu.cuModuleGetFunctionCount(&count, other.module);
	if (count <= 64 && !cu.cuModuleEnumerateFunctions(functions, count, other.module))
		for (unsigned i = 0; i < count; i++)
			(void)cu.cuFuncLoad(functions[i]);
	OK(cu.cuStreamCreate(&other.stream, 1));
	OK(cu.cuMemAlloc_v2(&other.memory, 4096));
	OK(cu.cuMemHostAlloc(&other.locked, 4096, 0));
	OK(cu.cuModuleGetFunction(&gate, other.module, "gate"));
	*other.gate = 0;
	OK(cu.cuLaunchKernel(gate, 1, 1, 1, 1, 1, 1, 0, other.stream, PARAMETERS(&other.gate), NULL));
	OK(cu.cuCtxPopCurrent_v2(NULL));
	OK(cu.cuCtxSetCurrent(context));
}

static void *pair_free(void *argument)
{
	(void)argument;
	(void)cu.cuCtxSetCurrent(other.context);
	return (void *)(intptr_t)cu.cuMemFree_v2(other.memory);
}

static void *pair_free_host(void *argument)
{
	(void)argument;
	(void)cu.cuCtxSetCurrent(other.context);
	return (void *)(intptr_t)cu.cuMemFreeHost(other.locked);
}

static void *pair_unload(void *argument)
{
	(void)argument;
	(void)cu.cuCtxSetCurrent(other.context);
	return (void *)(intptr_t)cu.cuModuleUnload(other.module);
}

static void *pair_synchronize(void *argument)
{
	(void)argument;
	(void)cu.cuCtxSetCurrent(other.context);
	return (void *)(intptr_t)cu.cuCtxSynchronize();
}

static void *pair_destroy(void *argument)
{
	(void)argument;
	return (void *)(intptr_t)cu.cuCtxDestroy_v2(other.context);
}

static void *pair_copy(void *argument)
{
	static char host[4 << 20];
	CUdeviceptr memory = 0;

	(void)argument;
	(void)cu.cuCtxSetCurrent(other.context);
	(void)cu.cuMemAlloc_v2(&memory, sizeof(host));
	return (void *)(intptr_t)cu.cuMemcpyDtoHAsync_v2(host, memory, sizeof(host), other.stream);
}

/* All that a program does, in the first context; the gate is opened when it is done. */
static void pair_beside(void *(*run)(void *argument))
{
	static char host[2 << 20];
	uint32_t value = 5, count = 1;
	CUdeviceptr out = 0;
	void *locked = NULL, *returned = NULL;
	CUstream stream = NULL;
	pthread_t thread;

	pair_begin();
	(void)pthread_create(&thread, NULL, run, NULL);
	(void)nanosleep(&(struct timespec){.tv_nsec = MOMENT_NS}, NULL);
	OK(cu.cuCtxSetCurrent(context));
	OK(cu.cuMemAlloc_v2(&out, sizeof(host)));
	OK(cu.cuStreamCreate(&stream, 1));
	OK(cu.cuMemHostAlloc(&locked, 4096, 0));
	OK(check_launch("fill", 1, stream, PARAMETERS(&out, &value, &count)));
	OK(cu.cuMemcpyDtoHAsync_v2(host, out, sizeof(host), stream));
	OK(cu.cuStreamSynchronize(stream));
	IS(5, host[0]);
	OK(cu.cuMemFree_v2(out));
	*other.gate = 1;
	(void)pthread_join(thread, &returned);
	IS(0, (long long)(intptr_t)returned);
	OK(cu.cuMemFreeHost(locked));
}

static void pair_beside_free(void)
{
	pair_beside(pair_free);
}

static void pair_beside_free_host(void)
{
	pair_beside(pair_free_host);
}

static void pair_beside_unload(void)
{
	pair_beside(pair_unload);
}

static void pair_beside_synchronize(void)
{
	pair_beside(pair_synchronize);
}

static void pair_beside_destroy(void)
{
	pair_beside(pair_destroy);
}

static void pair_beside_copy(void)
{
	pair_beside(pair_copy);
}

/* What a kernel does in the one context, the other does not hear of. */
static void pair_failure(void)
{
	CUfunction trap = NULL;
	CUdeviceptr out = 0;

	pair_begin();
	*other.gate = 1;
	OK(cu.cuCtxPushCurrent_v2(other.context));
	OK(cu.cuStreamSynchronize(other.stream));
	OK(cu.cuModuleGetFunction(&trap, other.module, "trap"));
	OK(cu.cuLaunchKernel(trap, 1, 1, 1, 1, 1, 1, 0, other.stream, NULL, NULL));
	NOTE(cu.cuStreamSynchronize(other.stream));
	NOTE(cu.cuMemAlloc_v2(&out, 4096));
	OK(cu.cuCtxPopCurrent_v2(NULL));
	NOTE(cu.cuMemAlloc_v2(&out, 4096));
	NOTE(check_launch("nop", 1, NULL, NULL));
	NOTE(cu.cuCtxSynchronize());
	OK(cu.cuCtxPushCurrent_v2(other.context));
	NOTE(cu.cuMemAlloc_v2(&out, 4096));
	OK(cu.cuCtxPopCurrent_v2(NULL));
}

/* What is set for a kernel holds on one device. */
static void pair_kernel(void)
{
	CUlibrary library = NULL;
	CUkernel kernel = NULL;
	CUcontext second = NULL;
	int value = 0;

	OK(cu.cuLibraryLoadData(&library, kernels_ptx, NULL, NULL, 0, NULL, NULL, 0));
	OK(cu.cuLibraryGetKernel(&kernel, library, "nop"));
	OK(cu.cuKernelSetAttribute(8, 100000, kernel, 0));
	OK(cu.cuLaunchKernel((CUfunction)kernel, 1, 1, 1, 1, 1, 1, 100000, NULL, NULL, NULL));
	OK(cu.cuCtxCreate_v2(&second, 0, pair_device()));
	OK(cu.cuKernelGetAttribute(&value, 8, kernel, pair_device()));
	IS(49152, value);
	IS(1, cu.cuLaunchKernel((CUfunction)kernel, 1, 1, 1, 1, 1, 1, 100000, NULL, NULL, NULL));
	OK(cu.cuKernelSetAttribute(8, 100000, kernel, pair_device()));
	OK(cu.cuLaunchKernel((CUfunction)kernel, 1, 1, 1, 1, 1, 1, 100000, NULL, NULL, NULL));
	OK(cu.cuCtxSynchronize());
	OK(cu.cuCtxSetCurrent(context));
	OK(cu.cuLaunchKernel((CUfunction)kernel, 1, 1, 1, 1, 1, 1, 100000, NULL, NULL, NULL));
	OK(cu.cuCtxSynchronize());
}

static int pair_ordinal(CUdeviceptr pointer)
{
	enum { ORDINAL = 9 };
	int ordinal = 99;

	OK(cu.cuPointerGetAttribute(&ordinal, ORDINAL, pointer));
	return ordinal;
}

/* Memory that is of the second GPU, while a context of the first is current. */
static void pair_pointer(void)
{
	const int device = pair_device();
	const CUmemAllocationProp properties = {.type = 1, .location = {1, device}};
	const CUmemPoolProps of_pool = {.alloc_type = 1, .location = {1, device}};
	enum { PIECE = 2 << 20 };
	CUmemGenericAllocationHandle handle = 0;
	CUdeviceptr address = 0, pooled = 0;
	CUmemoryPool pool = NULL;

	OK(cu.cuMemAddressReserve(&address, PIECE, 0, 0, 0));
	OK(cu.cuMemCreate(&handle, PIECE, &properties, 0));
	OK(cu.cuMemMap(address, PIECE, 0, handle, 0));
	OK(cu.cuMemRelease(handle));
	TRUE(pair_ordinal(address) == device);
	OK(cu.cuMemUnmap(address, PIECE));
	OK(cu.cuMemAddressFree(address, PIECE));
	OK(cu.cuMemPoolCreate(&pool, &of_pool));
	OK(cu.cuMemAllocFromPoolAsync(&pooled, 4096, pool, NULL));
	TRUE(pair_ordinal(pooled) == device);
	OK(cu.cuMemFreeAsync(pooled, NULL));
	OK(cu.cuStreamSynchronize(NULL));
	OK(cu.cuMemPoolDestroy(pool));
	OK(cu.cuDeviceGetDefaultMemPool(&pool, device));
	OK(cu.cuMemAllocFromPoolAsync(&pooled, 4096, pool, NULL));
	TRUE(pair_ordinal(pooled) == device);
	OK(cu.cuMemFreeAsync(pooled, NULL));
	OK(cu.cuStreamSynchronize(NULL));
	/* And where its stream is, while the other context is current. */
	pair_begin();
	OK(cu.cuMemAllocAsync(&pooled, 4096, other.stream));
	TRUE(pair_ordinal(pooled) == device);
	*other.gate = 1;
	OK(cu.cuCtxSetCurrent(other.context));
	OK(cu.cuMemFreeAsync(pooled, other.stream));
	OK(cu.cuStreamSynchronize(other.stream));
}

/* A kernel of a library that is to run in the second context, while the first is current. */
static void pair_node(void)
{
	uint32_t value = 77, count = 1, word = 0;
	CUDA_KERNEL_NODE_PARAMS parameters = {.grid_x = 1,
					      .grid_y = 1,
					      .grid_z = 1,
					      .block_x = 1,
					      .block_y = 1,
					      .block_z = 1,
					      .parameters = PARAMETERS(&other.memory, &value, &count)},
				found = {.context = NULL};
	CUlibrary code = NULL;
	CUgraphNode node = NULL;
	CUgraphExec exec = NULL;
	CUgraph graph = NULL;

	pair_begin();
	*other.gate = 1;
	OK(cu.cuLibraryLoadData(&code, kernels_ptx, NULL, NULL, 0, NULL, NULL, 0));
	OK(cu.cuLibraryGetKernel(&parameters.kernel, code, "fill"));
	parameters.context = other.context;
	OK(cu.cuGraphCreate(&graph, 0));
	OK(cu.cuGraphAddKernelNode_v2(&node, graph, NULL, 0, &parameters));
	OK(cu.cuGraphKernelNodeGetParams_v2(node, &found));
	TRUE(found.context == other.context);
	value = 78;
	OK(cu.cuGraphKernelNodeSetParams_v2(node, &parameters));
	OK(cu.cuGraphKernelNodeGetParams_v2(node, &found));
	TRUE(found.context == other.context);
	OK(cu.cuGraphInstantiateWithFlags(&exec, graph, 0));
	OK(cu.cuGraphLaunch(exec, NULL));
	OK(cu.cuStreamSynchronize(NULL));
	OK(cu.cuCtxSetCurrent(other.context));
	OK(cu.cuMemcpyDtoH_v2(&word, other.memory, 4));
	IS(78, word);
}

/* Needs two GPUs: those of one that wait hold up the other, where it is the same. */
const struct check pair_checks[] = {
	{"while one waits", pair_beside_synchronize, true},
	{"while one frees", pair_beside_free, true},
	{"while one frees page-locked memory", pair_beside_free_host, true},
	{"while one unloads", pair_beside_unload, true},
	{"while one ends", pair_beside_destroy, true},
	{"while one copies", pair_beside_copy, true},
	{"a kernel's attributes", pair_kernel, true},
	{"after one has failed", pair_failure, true},
	{"which one a pointer is of", pair_pointer, true},
	{"a node of another context", pair_node, true},
	END,
};
