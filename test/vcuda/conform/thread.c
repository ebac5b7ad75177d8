/* SPDX-License-Identifier: Apache-2.0 */

/* Several threads of one process. */

#include <pthread.h>

#include "check.h"

enum { THREADS = 8, ROUNDS = 50 };

static void *thread_work(void *argument)
{
	long failed = 0;
	uint32_t value = (uint32_t)(uintptr_t)argument, count = 256, word = 0;
	CUfunction function = NULL;
	CUdeviceptr pointer = 0;
	CUstream stream = NULL;

	failed += cu.cuCtxSetCurrent(context) != 0;
	failed += cu.cuModuleGetFunction(&function, module, "fill") != 0;
	failed += cu.cuStreamCreate(&stream, 1) != 0;
	for (int i = 0; i < ROUNDS; i++) {
		failed += cu.cuMemAlloc_v2(&pointer, 1024) != 0;
		failed += cu.cuLaunchKernel(function, 2, 1, 1, 128, 1, 1, 0, stream,
					    PARAMETERS(&pointer, &value, &count), NULL) != 0;
		failed += cu.cuMemcpyDtoHAsync_v2(&word, pointer + 1020, 4, stream) != 0;
		failed += cu.cuStreamSynchronize(stream) != 0;
		failed += word != value;
		failed += cu.cuMemFree_v2(pointer) != 0;
	}
	failed += cu.cuStreamDestroy_v2(stream) != 0;
	return (void *)failed;
}

static void thread_many(void)
{
	pthread_t threads[THREADS];
	long failed = 0;
	void *more;

	check_load();
	for (uintptr_t i = 0; i < THREADS; i++)
		(void)pthread_create(&threads[i], NULL, thread_work, (void *)(i + 1));
	for (int i = 0; i < THREADS; i++) {
		(void)pthread_join(threads[i], &more);
		failed += (long)more;
	}
	IS(0, failed);
}

static volatile uint32_t *thread_gate_word;

static void *thread_open(void *argument)
{
	CUdeviceptr out = *(CUdeviceptr *)argument;
	uint32_t value = 6, count = 1;
	CUstream stream = NULL;

	(void)cu.cuCtxSetCurrent(context);
	(void)cu.cuStreamCreate(&stream, 1);
	(void)check_launch("fill", 1, stream, PARAMETERS(&out, &value, &count));
	(void)cu.cuStreamSynchronize(stream);
	*thread_gate_word = 1;
	(void)cu.cuStreamDestroy_v2(stream);
	return NULL;
}

/* One thread waits for a stream; another one launches, waits for its own, and lets the first go on. */
static void thread_waiting(void)
{
	uint32_t *pinned = check_pinned(4096);
	CUdeviceptr out = check_alloc(4);
	CUstream stream = NULL;
	pthread_t thread;

	thread_gate_word = pinned;
	check_load();
	OK(cu.cuStreamCreate(&stream, 1));
	check_gate(pinned, stream);
	(void)pthread_create(&thread, NULL, thread_open, &out);
	OK(cu.cuStreamSynchronize(stream));
	(void)pthread_join(thread, NULL);
	IS(6, check_word(out));
	OK(cu.cuStreamDestroy_v2(stream));
	OK(cu.cuMemFreeHost(pinned));
}

static void *thread_default(void *argument)
{
	unsigned long long *id = argument;

	(void)cu.cuCtxSetCurrent(context);
	(void)cu.cuStreamGetId(CU_STREAM_PER_THREAD, id);
	return NULL;
}

static void thread_own_default(void)
{
	unsigned long long mine = 0, other = 0, legacy = 0;
	pthread_t thread;

	OK(cu.cuStreamGetId(CU_STREAM_PER_THREAD, &mine));
	OK(cu.cuStreamGetId(CU_STREAM_LEGACY, &legacy));
	(void)pthread_create(&thread, NULL, thread_default, &other);
	(void)pthread_join(thread, NULL);
	TRUE(mine != legacy);
	TRUE(mine != other);
}

const struct check thread_checks[] = {
	{"eight at once", thread_many, false},
	{"one that waits does not stop another", thread_waiting, false},
	{"each has its own default stream", thread_own_default, false},
	END,
};
