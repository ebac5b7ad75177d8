/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Which functions wait for what a GPU does already: each is called while a kernel in a stream of its own waits for a word
 * that a thread writes OPEN_MS later. cuda.def says "waits" of those that take as long, and "now" of the others.
 */

#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include "question.h"

enum { OPEN_MS = 300, LAUNCHES = 20000, SHARE = 2 };

/* What the calls work on, made before. */
static struct {
	volatile uint32_t *gate;
	CUstream gated, stream;
	CUevent event;
	CUdeviceptr memory, reserved, mapped;
	CUmemGenericAllocationHandle physical;
	CUmemAllocationProp properties;
	size_t step;
	void *locked;
	CUmodule module, second;
	CUfunction function, late;
	CUgraph graph;
	CUgraphExec exec;
	CUcontext context;
	char host[1 << 20];
} with;

static CUresult wait_alloc(void)
{
	CUdeviceptr pointer;

	return cu.cuMemAlloc_v2(&pointer, 64 << 20);
}

static CUresult wait_free(void)
{
	return cu.cuMemFree_v2(with.memory);
}

static CUresult wait_host_alloc(void)
{
	void *pointer;

	return cu.cuMemHostAlloc(&pointer, 1 << 20, 0);
}

static CUresult wait_host_free(void)
{
	return cu.cuMemFreeHost(with.locked);
}

static CUresult wait_load(void)
{
	CUmodule module;

	return cu.cuModuleLoadData(&module, kernels_ptx);
}

static CUresult wait_unload(void)
{
	return cu.cuModuleUnload(with.second);
}

static CUresult wait_get_function(void)
{
	CUfunction function;

	return cu.cuModuleGetFunction(&function, with.second, "small");
}

static CUresult wait_launch_first(void)
{
	return cu.cuLaunchKernel(with.late, 1, 1, 1, 1, 1, 1, 0, with.stream, NULL, NULL);
}

static CUresult wait_launch(void)
{
	return cu.cuLaunchKernel(with.function, 1, 1, 1, 1, 1, 1, 0, with.stream, NULL, NULL);
}

static CUresult wait_stream_create(void)
{
	CUstream stream;

	return cu.cuStreamCreate(&stream, 1);
}

static CUresult wait_stream_destroy(void)
{
	return cu.cuStreamDestroy_v2(with.gated);
}

static CUresult wait_event_destroy(void)
{
	return cu.cuEventDestroy_v2(with.event);
}

static CUresult wait_copy_in(void)
{
	return cu.cuMemcpyHtoDAsync_v2(with.memory, with.host, sizeof(with.host), with.stream);
}

static CUresult wait_create(void)
{
	CUmemGenericAllocationHandle physical;

	return cu.cuMemCreate(&physical, with.step, &with.properties, 0);
}

static CUresult wait_map(void)
{
	return cu.cuMemMap(with.reserved, with.step, 0, with.physical, 0);
}

static CUresult wait_unmap(void)
{
	return cu.cuMemUnmap(with.mapped, with.step);
}

static CUresult wait_release(void)
{
	return cu.cuMemRelease(with.physical);
}

static CUresult wait_limit(void)
{
	return cu.cuCtxSetLimit(0, 16384);
}

static CUresult wait_instantiate(void)
{
	CUgraphExec exec;

	return cu.cuGraphInstantiateWithFlags(&exec, with.graph, 0);
}

static CUresult wait_exec_destroy(void)
{
	return cu.cuGraphExecDestroy(with.exec);
}

static CUresult wait_context_create(void)
{
	CUcontext context;

	return cu.cuCtxCreate_v2(&context, 0, 0);
}

static CUresult wait_context_destroy(void)
{
	return cu.cuCtxDestroy_v2(with.context);
}

static const struct {
	const char *name;
	CUresult (*call)(void);
	bool waits; /* as cuda.def has it */
} calls[] = {
	{"cuMemAlloc", wait_alloc, false},
	{"cuMemFree", wait_free, true},
	{"cuMemHostAlloc", wait_host_alloc, true},
	{"cuMemFreeHost", wait_host_free, true},
	{"cuModuleLoadData", wait_load, true},
	{"cuModuleUnload", wait_unload, true},
	{"cuModuleGetFunction", wait_get_function, true},
	{"cuLaunchKernel, of a function that was never launched", wait_launch_first, false},
	{"cuLaunchKernel", wait_launch, false},
	{"cuStreamCreate", wait_stream_create, false},
	{"cuStreamDestroy, of the one that waits", wait_stream_destroy, false},
	{"cuEventDestroy", wait_event_destroy, false},
	{"cuMemcpyHtoDAsync, from memory that is not page-locked", wait_copy_in, false},
	{"cuMemCreate", wait_create, false},
	{"cuMemMap", wait_map, false},
	{"cuMemUnmap", wait_unmap, false},
	{"cuMemRelease", wait_release, false},
	{"cuCtxSetLimit, of stacks", wait_limit, true},
	{"cuGraphInstantiate", wait_instantiate, false},
	{"cuGraphExecDestroy", wait_exec_destroy, false},
	{"cuCtxCreate", wait_context_create, true},
	{"cuCtxDestroy", wait_context_destroy, true},
};
enum { CALLS = sizeof(calls) / sizeof(calls[0]) };

static double wait_now(void)
{
	struct timespec time;

	(void)clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec * 1e3 + (double)time.tv_nsec / 1e6;
}

static void wait_prepare_memory(void)
{
	with.properties.type = 1;
	with.properties.location.type = 1;
	(void)cu.cuMemAlloc_v2(&with.memory, sizeof(with.host));
	(void)cu.cuMemHostAlloc(&with.locked, 1 << 20, 0);
	(void)cu.cuMemGetAllocationGranularity(&with.step, &with.properties, 0);
	(void)cu.cuMemAddressReserve(&with.reserved, with.step, 0, 0, 0);
	(void)cu.cuMemAddressReserve(&with.mapped, with.step, 0, 0, 0);
	(void)cu.cuMemCreate(&with.physical, with.step, &with.properties, 0);
	(void)cu.cuMemMap(with.mapped, with.step, 0, with.physical, 0);
}

static void wait_prepare(void)
{
	CUcontext own = driver_begin();
	CUfunction gate = NULL;
	CUgraphNode node;

	wait_prepare_memory();
	(void)cu.cuCtxCreate_v2(&with.context, 0, 0);
	(void)cu.cuCtxPopCurrent_v2(NULL);
	(void)cu.cuCtxSetCurrent(own);
	(void)cu.cuMemHostAlloc((void **)&with.gate, 4096, 0);
	(void)cu.cuModuleLoadData(&with.module, kernels_ptx);
	(void)cu.cuModuleLoadData(&with.second, kernels_ptx);
	(void)cu.cuModuleGetFunction(&gate, with.module, "gate");
	(void)cu.cuModuleGetFunction(&with.function, with.module, "nop");
	(void)cu.cuModuleGetFunction(&with.late, with.second, "nop");
	(void)cu.cuStreamCreate(&with.gated, 1);
	(void)cu.cuStreamCreate(&with.stream, 1);
	(void)cu.cuEventCreate(&with.event, 0);
	(void)cu.cuGraphCreate(&with.graph, 0);
	(void)cu.cuGraphAddEmptyNode(&node, with.graph, NULL, 0);
	(void)cu.cuGraphInstantiateWithFlags(&with.exec, with.graph, 0);
	(void)cu.cuLaunchKernel(with.function, 1, 1, 1, 1, 1, 1, 0, with.stream, NULL, NULL);
	(void)cu.cuCtxSynchronize();
	*with.gate = 0;
	(void)cu.cuLaunchKernel(gate, 1, 1, 1, 1, 1, 1, 0, with.gated, (void *[]){&with.gate}, NULL);
	(void)cu.cuEventRecord(with.event, with.gated);
}

static void *wait_open(void *nothing)
{
	(void)usleep(OPEN_MS * 1000);
	*with.gate = 1;
	return nothing;
}

struct waited {
	CUresult r;
	double ms;
};

static void wait_try(const void *about, void *ret)
{
	const size_t number = *(const size_t *)about;
	struct waited *waited = ret;
	pthread_t thread;
	double begin;

	wait_prepare();
	(void)pthread_create(&thread, NULL, wait_open, NULL);
	begin = wait_now();
	waited->r = calls[number].call();
	waited->ms = wait_now() - begin;
	(void)pthread_join(thread, NULL);
}

/* How many launches a stream takes that is not getting on, before one waits. */
static void wait_fill(const void *about, void *ret)
{
	int *count = ret;
	pthread_t thread;

	(void)about;
	wait_prepare();
	(void)pthread_create(&thread, NULL, wait_open, NULL);
	for (*count = 0; *count < LAUNCHES; (*count)++) {
		const double begin = wait_now();

		(void)cu.cuLaunchKernel(with.function, 1, 1, 1, 1, 1, 1, 0, with.gated, NULL, NULL);
		if (wait_now() - begin > 20 || *with.gate)
			break;
	}
	(void)pthread_join(thread, NULL);
}

void ask_waits(int argc, char **argv)
{
	int count = 0;

	(void)argc;
	(void)argv;
	for (size_t i = 0; i < CALLS; i++) {
		struct waited waited = {-1, 0};
		const int r = alone(wait_try, &i, &waited, sizeof(waited));

		answer(r == 0 && (calls[i].waits || waited.ms < OPEN_MS / SHARE), "%s: %d, %.1f ms of %d%s",
		       calls[i].name, waited.r, waited.ms, OPEN_MS,
		       calls[i].waits && waited.ms < OPEN_MS / SHARE ? ", so it need not be said to wait" : "");
	}
	(void)alone(wait_fill, NULL, &count, sizeof(count));
	remark("a stream that waits takes %d launches", count);
}
