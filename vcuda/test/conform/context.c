/* SPDX-License-Identifier: Apache-2.0 */

/* Contexts: each check has a process of its own, since all begin with none. */

#include <pthread.h>

#include "check.h"

static void context_init(void)
{
	OK(cu.cuInit(0));
}

static CUcontext context_primary(void)
{
	CUcontext primary = NULL;

	context_init();
	OK(cu.cuDevicePrimaryCtxRetain(&primary, 0));
	OK(cu.cuCtxSetCurrent(primary));
	return primary;
}

static void context_none(void)
{
	size_t free_bytes, total;
	CUdeviceptr pointer;
	CUcontext current = (CUcontext)1;
	CUstream stream;
	CUdevice device;
	CUevent event;

	context_init();
	IS(201, cu.cuMemAlloc_v2(&pointer, 4096));
	IS(201, cu.cuCtxSynchronize());
	IS(201, cu.cuCtxGetDevice(&device));
	IS(201, cu.cuStreamCreate(&stream, 0));
	IS(201, cu.cuEventCreate(&event, 0));
	IS(201, cu.cuMemGetInfo_v2(&free_bytes, &total));
	OK(cu.cuCtxGetCurrent(&current));
	TRUE(current == NULL);
}

static void context_retain(void)
{
	CUcontext primary = NULL, again = NULL, current = NULL;

	context_init();
	OK(cu.cuDevicePrimaryCtxRetain(&primary, 0));
	OK(cu.cuCtxGetCurrent(&current));
	TRUE(current == NULL);
	OK(cu.cuDevicePrimaryCtxRetain(&again, 0));
	TRUE(primary && primary == again);
	IS(101, cu.cuDevicePrimaryCtxRetain(&again, 44));
	IS(1, cu.cuDevicePrimaryCtxRetain(NULL, 0));
}

static void context_order(void)
{
	CUcontext first = NULL, second = NULL, popped = NULL;

	context_init();
	OK(cu.cuCtxCreate_v2(&first, 0, 0));
	OK(cu.cuCtxCreate_v2(&second, 0, 0));
	OK(cu.cuCtxPopCurrent_v2(&popped));
	TRUE(popped == second);
	OK(cu.cuCtxPopCurrent_v2(&popped));
	TRUE(popped == first);
	OK(cu.cuCtxPushCurrent_v2(second));
	OK(cu.cuCtxPushCurrent_v2(first));
	OK(cu.cuCtxGetCurrent(&popped));
	TRUE(popped == first);
	OK(cu.cuCtxPopCurrent_v2(NULL));
	OK(cu.cuCtxGetCurrent(&popped));
	TRUE(popped == second);
}

static void context_pop_empty(void)
{
	CUcontext popped = NULL;

	context_init();
	IS(201, cu.cuCtxPopCurrent_v2(&popped));
	IS(201, cu.cuCtxPopCurrent_v2(NULL));
	NOTE(cu.cuCtxPushCurrent_v2(NULL));
}

static void context_destroy(void)
{
	CUcontext first = NULL, second = NULL, current = NULL;

	context_init();
	OK(cu.cuCtxCreate_v2(&first, 0, 0));
	OK(cu.cuCtxCreate_v2(&second, 0, 0));
	OK(cu.cuCtxDestroy_v2(second));
	OK(cu.cuCtxGetCurrent(&current));
	TRUE(current == first);
	OK(cu.cuCtxDestroy_v2(first));
	OK(cu.cuCtxGetCurrent(&current));
	TRUE(current == NULL);
	NOTE(cu.cuCtxDestroy_v2(NULL));
}

static void context_destroy_primary(void)
{
	CUcontext primary = context_primary();

	NOTE(cu.cuCtxDestroy_v2(primary));
}

static void *context_of_thread(void *unused)
{
	CUcontext current = (CUcontext)1;

	(void)unused;
	(void)cu.cuCtxGetCurrent(&current);
	return current;
}

static void context_thread(void)
{
	pthread_t thread;
	void *current = NULL;

	(void)context_primary();
	(void)pthread_create(&thread, NULL, context_of_thread, NULL);
	(void)pthread_join(thread, &current);
	TRUE(current == NULL);
}

static void context_set(void)
{
	CUcontext first = NULL, second = NULL, current = NULL;

	context_init();
	OK(cu.cuCtxCreate_v2(&first, 0, 0));
	OK(cu.cuCtxCreate_v2(&second, 0, 0));
	OK(cu.cuCtxSetCurrent(NULL));
	OK(cu.cuCtxGetCurrent(&current));
	TRUE(current == first);
	OK(cu.cuCtxSetCurrent(second));
	OK(cu.cuCtxGetCurrent(&current));
	TRUE(current == second);
	OK(cu.cuCtxSetCurrent(NULL));
	OK(cu.cuCtxGetCurrent(&current));
	TRUE(current == NULL);
	OK(cu.cuCtxSetCurrent(NULL));
}

static void context_primary_flags(void)
{
	unsigned flags = 77;
	int active = 77;

	context_init();
	OK(cu.cuDevicePrimaryCtxGetState(0, &flags, &active));
	IS(0, flags);
	IS(0, active);
	OK(cu.cuDevicePrimaryCtxSetFlags_v2(0, 4));
	OK(cu.cuDevicePrimaryCtxGetState(0, &flags, &active));
	NOTE(flags);
	IS(0, active);
	(void)context_primary();
	OK(cu.cuDevicePrimaryCtxGetState(0, &flags, &active));
	NOTE(flags);
	IS(1, active);
	NOTE(cu.cuDevicePrimaryCtxSetFlags_v2(0, 1));
	OK(cu.cuDevicePrimaryCtxGetState(0, &flags, &active));
	NOTE(flags);
	NOTE(cu.cuDevicePrimaryCtxSetFlags_v2(0, 3));
	IS(101, cu.cuDevicePrimaryCtxSetFlags_v2(44, 0));
	IS(101, cu.cuDevicePrimaryCtxGetState(44, &flags, &active));
}

static void context_reset(void)
{
	CUdeviceptr pointer;
	unsigned flags;
	int active = 77;
	CUcontext current = NULL;

	(void)context_primary();
	pointer = check_alloc(4096);
	OK(cu.cuDevicePrimaryCtxReset_v2(0));
	OK(cu.cuDevicePrimaryCtxGetState(0, &flags, &active));
	NOTE(active);
	NOTE(cu.cuMemFree_v2(pointer));
	NOTE(cu.cuCtxSynchronize());
	OK(cu.cuCtxGetCurrent(&current));
	NOTE(current != NULL);
	NOTE(cu.cuDevicePrimaryCtxRelease_v2(0));
	OK(cu.cuDevicePrimaryCtxRetain(&current, 0));
	OK(cu.cuCtxSetCurrent(current));
	(void)check_alloc(4096);
}

static void context_release(void)
{
	CUcontext primary = context_primary(), current = NULL;
	unsigned flags;
	int active = 77;

	OK(cu.cuDevicePrimaryCtxRetain(&primary, 0));
	OK(cu.cuDevicePrimaryCtxRelease_v2(0));
	OK(cu.cuDevicePrimaryCtxGetState(0, &flags, &active));
	IS(1, active);
	OK(cu.cuDevicePrimaryCtxRelease_v2(0));
	OK(cu.cuDevicePrimaryCtxGetState(0, &flags, &active));
	IS(0, active);
	IS(201, cu.cuDevicePrimaryCtxRelease_v2(0));
	OK(cu.cuCtxGetCurrent(&current));
	NOTE(current == primary);
	NOTE(cu.cuCtxSynchronize());
	IS(101, cu.cuDevicePrimaryCtxRelease_v2(44));
}

static void context_device(void)
{
	CUdevice device = -1;
	CUcontext primary = context_primary();

	OK(cu.cuCtxGetDevice(&device));
	IS(0, device);
	IS(1, cu.cuCtxGetDevice(NULL));
	device = -1;
	OK(cu.cuCtxGetDevice_v2(&device, primary));
	IS(0, device);
	OK(cu.cuCtxGetDevice_v2(&device, NULL));
	OK(cu.cuCtxSynchronize_v2(primary));
}

static void context_two(void)
{
	CUcontext first = NULL, second = NULL;
	CUdeviceptr pointer;
	uint32_t word = 5;

	context_init();
	OK(cu.cuCtxCreate_v2(&first, 0, 0));
	pointer = check_alloc(4096);
	OK(cu.cuCtxCreate_v2(&second, 0, 0));
	NOTE(cu.cuMemcpyHtoD_v2(pointer, &word, 4));
	word = 0;
	NOTE(cu.cuMemcpyDtoH_v2(&word, pointer, 4));
	NOTE(word);
	NOTE(cu.cuMemFree_v2(pointer));
	OK(cu.cuCtxSetCurrent(first));
	NOTE(cu.cuMemFree_v2(pointer));
}

static void context_create_errors(void)
{
	CUcontext created = NULL;

	context_init();
	IS(1, cu.cuCtxCreate_v2(NULL, 0, 0));
	IS(101, cu.cuCtxCreate_v2(&created, 0, 44));
	NOTE(cu.cuCtxCreate_v2(&created, 3, 0));
	NOTE(cu.cuCtxCreate_v2(&created, 0x10000, 0));
	OK(cu.cuCtxCreate_v3(&created, NULL, 0, 0, 0));
	OK(cu.cuCtxCreate_v4(&created, NULL, 0, 0));
}

static void context_version(void)
{
	CUcontext primary = context_primary();
	unsigned version = 0;

	OK(cu.cuCtxGetApiVersion(primary, &version));
	NOTE(version);
	OK(cu.cuCtxGetApiVersion(NULL, &version));
	IS(1, cu.cuCtxGetApiVersion(primary, NULL));
}

static void context_flags(void)
{
	CUcontext created = NULL;
	unsigned flags = 99;

	context_init();
	OK(cu.cuCtxCreate_v2(&created, 4, 0));
	OK(cu.cuCtxGetFlags(&flags));
	NOTE(flags);
	OK(cu.cuCtxSetFlags(1));
	OK(cu.cuCtxGetFlags(&flags));
	NOTE(flags);
	NOTE(cu.cuCtxSetFlags(3));
	IS(1, cu.cuCtxGetFlags(NULL));
}

static void context_id(void)
{
	CUcontext primary = context_primary(), created = NULL;
	unsigned long long id = 0, other = 0;

	OK(cu.cuCtxGetId(primary, &id));
	OK(cu.cuCtxGetId(NULL, &other));
	TRUE(id && id == other);
	OK(cu.cuCtxCreate_v2(&created, 0, 0));
	OK(cu.cuCtxGetId(NULL, &other));
	TRUE(id != other);
}

static void context_limits(void)
{
	size_t value = 0;

	(void)context_primary();
	/* How large the buffer of printf is, is the GPU's business; the third is for GPUs of another time. */
	for (int i = 0; i < 5; i++) {
		NOTE(cu.cuCtxGetLimit(&value, i));
		if (i != 1 && i != 3)
			NOTE(value);
	}
	OK(cu.cuCtxSetLimit(0, 4096));
	OK(cu.cuCtxGetLimit(&value, 0));
	NOTE(value);
	OK(cu.cuCtxSetLimit(2, 16 << 20));
	OK(cu.cuCtxGetLimit(&value, 2));
	NOTE(value);
	NOTE(cu.cuCtxGetLimit(&value, 99));
	NOTE(cu.cuCtxSetLimit(99, 1));
	IS(1, cu.cuCtxGetLimit(NULL, 0));
}

/* What a limit has when it was set to more or less than it can have, or when nobody can set it. */
static void context_limits_set(void)
{
	static const struct {
		int limit;
		size_t value;
	} sets[] = {{0, 4096}, {0, 1 << 20}, {1, 0}, {2, 0},    {3, 0}, {3, 3}, {3, 4096},
		    {4, 0},    {4, 4096},    {5, 3}, {5, 4096}, {6, 0}, {7, 0}, {7, 1 << 20},
		    {8, 0},    {8, 1},       {9, 0}, {10, 0},   {11, 0}};

	(void)context_primary();
	for (size_t i = 0; i < sizeof(sets) / sizeof(sets[0]); i++) {
		size_t value = 0;

		NOTE(cu.cuCtxSetLimit(sets[i].limit, sets[i].value));
		NOTE(cu.cuCtxGetLimit(&value, sets[i].limit));
		/* How much shared memory there is, is the GPU's business. */
		if (sets[i].limit != 7)
			NOTE(value);
	}
}

static void context_caches(void)
{
	int config = 9;

	(void)context_primary();
	OK(cu.cuCtxGetCacheConfig(&config));
	NOTE(config);
	OK(cu.cuCtxSetCacheConfig(2));
	OK(cu.cuCtxGetCacheConfig(&config));
	NOTE(config);
	NOTE(cu.cuCtxSetCacheConfig(9));
	OK(cu.cuCtxGetSharedMemConfig(&config));
	NOTE(config);
	OK(cu.cuCtxSetSharedMemConfig(1));
	NOTE(cu.cuCtxSetSharedMemConfig(9));
	NOTE(cu.cuCtxResetPersistingL2Cache());
}

static void context_priorities(void)
{
	int least = 9, greatest = 9;

	(void)context_primary();
	OK(cu.cuCtxGetStreamPriorityRange(&least, &greatest));
	NOTE(least);
	NOTE(greatest);
	OK(cu.cuCtxGetStreamPriorityRange(NULL, NULL));
}

static void context_affinity(void)
{
	long long affinity[8] = {0};

	(void)context_primary();
	NOTE(cu.cuCtxGetExecAffinity(affinity, 0));
	NOTE(cu.cuCtxGetExecAffinity(affinity, 55));
}

static void context_attach(void)
{
	CUcontext created = NULL, attached = NULL;

	context_init();
	OK(cu.cuCtxCreate_v2(&created, 0, 0));
	NOTE(cu.cuCtxAttach(&attached, 0));
	NOTE(attached == created);
	NOTE(cu.cuCtxDetach(created));
	NOTE(cu.cuCtxAttach(&attached, 1));
	OK(cu.cuCtxSynchronize());
}

static void context_peers(void)
{
	CUcontext primary = context_primary(), created = NULL;

	OK(cu.cuCtxCreate_v2(&created, 0, 0));
	NOTE(cu.cuCtxEnablePeerAccess(primary, 0));
	NOTE(cu.cuCtxDisablePeerAccess(primary));
	NOTE(cu.cuCtxEnablePeerAccess(NULL, 0));
}

static void context_profiler(void)
{
	(void)context_primary();
	OK(cu.cuProfilerStart());
	OK(cu.cuProfilerStop());
}

static void context_profiler_none(void)
{
	context_init();
	NOTE(cu.cuProfilerStart());
}

const struct check context_checks[] = {
	{"calls without one", context_none, true},
	{"retaining does not make it current", context_retain, true},
	{"push and pop", context_order, true},
	{"pop of an empty stack", context_pop_empty, true},
	{"destroying the current one pops it", context_destroy, true},
	{"destroying a primary one", context_destroy_primary, true},
	{"each thread has its own stack", context_thread, true},
	{"set current, NULL pops", context_set, true},
	{"flags and state of the primary one", context_primary_flags, true},
	{"reset takes memory and all", context_reset, true},
	{"release below zero", context_release, true},
	{"its device", context_device, true},
	{"pointers of another one", context_two, true},
	{"creating with nonsense", context_create_errors, true},
	{"version of its interface", context_version, true},
	{"flags", context_flags, true},
	{"identity", context_id, true},
	{"limits", context_limits, true},
	{"limits as they are set", context_limits_set, true},
	{"cache configuration", context_caches, true},
	{"range of priorities", context_priorities, true},
	{"execution affinity", context_affinity, true},
	{"attach and detach", context_attach, true},
	{"peers on one device", context_peers, true},
	{"profiler", context_profiler, true},
	{"profiler without one", context_profiler_none, true},
	END,
};
