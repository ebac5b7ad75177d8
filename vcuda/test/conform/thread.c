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

/* ---- captures, whose mode is a thread's own ---- */

static CUresult thread_results[4];

/* Return: a thread's with the primary context, which has ended. */
static void thread_do(void *(*run)(void *argument), void *argument)
{
	pthread_t thread;

	(void)pthread_create(&thread, NULL, run, argument);
	(void)pthread_join(thread, NULL);
}

static void *thread_allocate(void *argument)
{
	CUdeviceptr pointer = 0;

	(void)argument;
	(void)cu.cuCtxSetCurrent(context);
	thread_results[0] = cu.cuMemAlloc_v2(&pointer, 4096);
	thread_results[1] = cu.cuMemFree_v2(pointer);
	return NULL;
}

/* In a mode of capture: what another thread may do, and whether the capture is whole after it. */
static void thread_beside_capture(int mode)
{
	CUstream stream = NULL;
	CUgraph graph = NULL;

	check_load();
	OK(cu.cuStreamCreate(&stream, 1));
	OK(cu.cuStreamBeginCapture_v2(stream, mode));
	OK(check_launch("nop", 1, stream, NULL));
	thread_do(thread_allocate, NULL);
	NOTE(thread_results[0]);
	NOTE(thread_results[1]);
	NOTE(cu.cuStreamEndCapture(stream, &graph));
	if (graph)
		OK(cu.cuGraphDestroy(graph));
	OK(cu.cuStreamDestroy_v2(stream));
}

static void thread_capture_own(void)
{
	thread_beside_capture(1);
}

static void thread_capture_relaxed(void)
{
	thread_beside_capture(2);
}

static void *thread_end_capture(void *argument)
{
	CUgraph graph = NULL;

	(void)cu.cuCtxSetCurrent(context);
	thread_results[0] = cu.cuStreamEndCapture(argument, &graph);
	return NULL;
}

static void thread_capture_of_another(void)
{
	CUstream stream = NULL;
	CUgraph graph = NULL;

	OK(cu.cuStreamCreate(&stream, 1));
	OK(cu.cuStreamBeginCapture_v2(stream, 1));
	thread_do(thread_end_capture, stream);
	IS(908, thread_results[0]);
	NOTE(cu.cuStreamEndCapture(stream, &graph));
}

static void *thread_exchange(void *argument)
{
	int mode = 1;

	(void)argument;
	thread_results[0] = cu.cuThreadExchangeStreamCaptureMode(&mode);
	thread_results[1] = mode;
	return NULL;
}

static void thread_modes(void)
{
	int mode = 2;

	OK(cu.cuThreadExchangeStreamCaptureMode(&mode));
	IS(0, mode);
	thread_do(thread_exchange, NULL);
	IS(0, thread_results[0]);
	IS(0, thread_results[1]);
	/* One that comes when the other has gone has nothing of it. */
	thread_do(thread_exchange, NULL);
	IS(0, thread_results[1]);
	mode = 0;
	OK(cu.cuThreadExchangeStreamCaptureMode(&mode));
	IS(2, mode);
}

const struct check thread_checks[] = {
	{"eight at once", thread_many, false},
	{"one that waits does not stop another", thread_waiting, false},
	{"each has its own default stream", thread_own_default, false},
	{"one allocates while another captures for its thread alone", thread_capture_own, true},
	{"one allocates while another captures and allows all", thread_capture_relaxed, true},
	{"one does not end what another captures", thread_capture_of_another, true},
	{"each has its own mode of captures", thread_modes, true},
	END,
};
