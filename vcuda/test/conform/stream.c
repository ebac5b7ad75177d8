/* SPDX-License-Identifier: Apache-2.0 */

/* Streams: their order, what is known of them, and functions of the host in them. */

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "check.h"

static CUstream stream_make(unsigned flags)
{
	CUstream stream = NULL;

	OK(cu.cuStreamCreate(&stream, flags));
	return stream;
}

static void stream_create(void)
{
	CUstream stream = stream_make(0);
	unsigned flags = 9;

	TRUE(stream != NULL);
	OK(cu.cuStreamGetFlags(stream, &flags));
	IS(0, flags);
	OK(cu.cuStreamDestroy_v2(stream));
	stream = stream_make(1);
	OK(cu.cuStreamGetFlags(stream, &flags));
	IS(1, flags);
	OK(cu.cuStreamDestroy_v2(stream));
	IS(1, cu.cuStreamCreate(&stream, 8));
	IS(1, cu.cuStreamCreate(NULL, 0));
}

static void stream_priorities(void)
{
	CUstream stream = NULL;
	int priority = 9;

	OK(cu.cuStreamCreateWithPriority(&stream, 1, -2));
	OK(cu.cuStreamGetPriority(stream, &priority));
	NOTE(priority);
	OK(cu.cuStreamDestroy_v2(stream));
	OK(cu.cuStreamCreateWithPriority(&stream, 0, -100));
	OK(cu.cuStreamGetPriority(stream, &priority));
	NOTE(priority);
	OK(cu.cuStreamDestroy_v2(stream));
	OK(cu.cuStreamCreateWithPriority(&stream, 0, 100));
	OK(cu.cuStreamGetPriority(stream, &priority));
	NOTE(priority);
	OK(cu.cuStreamDestroy_v2(stream));
}

static void stream_identity(void)
{
	CUstream first = stream_make(0), second = stream_make(0);
	unsigned long long a = 0, b = 0;
	CUcontext of = NULL;
	CUdevice device = -1;

	OK(cu.cuStreamGetId(first, &a));
	OK(cu.cuStreamGetId(second, &b));
	TRUE(a != b);
	OK(cu.cuStreamGetCtx(first, &of));
	TRUE(of == context);
	OK(cu.cuStreamGetCtx(NULL, &of));
	TRUE(of == context);
	OK(cu.cuStreamGetDevice(first, &device));
	IS(0, device);
	OK(cu.cuStreamDestroy_v2(first));
	OK(cu.cuStreamDestroy_v2(second));
}

static void stream_query(void)
{
	uint32_t *pinned = check_pinned(4096);
	CUstream stream = stream_make(1);

	OK(cu.cuStreamQuery(stream));
	check_gate(pinned, stream);
	IS(600, cu.cuStreamQuery(stream));
	IS(600, cu.cuStreamQuery(stream));
	*(volatile uint32_t *)pinned = 1;
	OK(cu.cuStreamSynchronize(stream));
	OK(cu.cuStreamQuery(stream));
	OK(cu.cuStreamQuery(NULL));
	OK(cu.cuStreamDestroy_v2(stream));
	OK(cu.cuMemFreeHost(pinned));
}

/* Work of a stream that is destroyed is done all the same. */
static void stream_destroyed(void)
{
	uint32_t *pinned = check_pinned(4096), value = 4, count = 1;
	CUdeviceptr out = check_alloc(4);
	CUstream stream = stream_make(1);

	check_gate(pinned, stream);
	OK(check_launch("fill", 1, stream, PARAMETERS(&out, &value, &count)));
	OK(cu.cuStreamDestroy_v2(stream));
	*(volatile uint32_t *)pinned = 1;
	OK(cu.cuCtxSynchronize());
	IS(4, check_word(out));
	OK(cu.cuMemFree_v2(out));
	OK(cu.cuMemFreeHost(pinned));
}

static void stream_destroy_default(void)
{
	NOTE(cu.cuStreamDestroy_v2(NULL));
}

/* The legacy stream waits for blocking streams, and they for it. */
static void stream_legacy_waits(void)
{
	uint32_t *pinned = check_pinned(4096);
	CUstream stream = stream_make(0);

	check_gate(pinned, stream);
	OK(check_launch("nop", 1, NULL, NULL));
	(void)usleep(20000);
	IS(600, cu.cuStreamQuery(NULL));
	*(volatile uint32_t *)pinned = 1;
	OK(cu.cuStreamSynchronize(NULL));
	check_gate(pinned, NULL);
	OK(check_launch("nop", 1, stream, NULL));
	(void)usleep(20000);
	IS(600, cu.cuStreamQuery(stream));
	*(volatile uint32_t *)pinned = 1;
	OK(cu.cuStreamSynchronize(stream));
	OK(cu.cuStreamDestroy_v2(stream));
	OK(cu.cuMemFreeHost(pinned));
}

static void stream_not_blocking(void)
{
	uint32_t *pinned = check_pinned(4096);
	CUstream stream = stream_make(1);

	check_gate(pinned, stream);
	OK(check_launch("nop", 1, NULL, NULL));
	OK(cu.cuStreamSynchronize(NULL));
	IS(600, cu.cuStreamQuery(stream));
	*(volatile uint32_t *)pinned = 1;
	OK(cu.cuStreamSynchronize(stream));
	check_gate(pinned, NULL);
	OK(check_launch("nop", 1, stream, NULL));
	OK(cu.cuStreamSynchronize(stream));
	IS(600, cu.cuStreamQuery(NULL));
	*(volatile uint32_t *)pinned = 1;
	OK(cu.cuStreamSynchronize(NULL));
	OK(cu.cuStreamDestroy_v2(stream));
	OK(cu.cuMemFreeHost(pinned));
}

static void stream_two(void)
{
	uint32_t *pinned = check_pinned(4096);
	CUstream first = stream_make(1), second = stream_make(1);

	check_gate(pinned, first);
	OK(check_launch("nop", 1, second, NULL));
	OK(cu.cuStreamSynchronize(second));
	IS(600, cu.cuStreamQuery(first));
	*(volatile uint32_t *)pinned = 1;
	OK(cu.cuStreamSynchronize(first));
	OK(cu.cuStreamDestroy_v2(first));
	OK(cu.cuStreamDestroy_v2(second));
	OK(cu.cuMemFreeHost(pinned));
}

static void stream_wait(void)
{
	uint32_t *pinned = check_pinned(4096);
	CUstream first = stream_make(1), second = stream_make(1);
	CUevent event = NULL;

	OK(cu.cuEventCreate(&event, 2));
	check_gate(pinned, first);
	OK(cu.cuEventRecord(event, first));
	OK(cu.cuStreamWaitEvent(second, event, 0));
	OK(check_launch("nop", 1, second, NULL));
	(void)usleep(20000);
	IS(600, cu.cuStreamQuery(second));
	*(volatile uint32_t *)pinned = 1;
	OK(cu.cuStreamSynchronize(second));
	OK(cu.cuStreamQuery(first));
	NOTE(cu.cuStreamWaitEvent(second, event, 99));
	OK(cu.cuEventDestroy_v2(event));
	OK(cu.cuStreamDestroy_v2(first));
	OK(cu.cuStreamDestroy_v2(second));
	OK(cu.cuMemFreeHost(pinned));
}

static void stream_wait_never_recorded(void)
{
	CUstream stream = stream_make(1);
	CUevent event = NULL;

	OK(cu.cuEventCreate(&event, 0));
	OK(cu.cuStreamWaitEvent(stream, event, 0));
	OK(cu.cuStreamSynchronize(stream));
	OK(cu.cuEventDestroy_v2(event));
	OK(cu.cuStreamDestroy_v2(stream));
}

/* ---- functions of the host ---- */

static _Atomic int stream_called, stream_may_end;
static volatile CUresult stream_inside;
static CUdeviceptr stream_out;

static void stream_function(void *data)
{
	CUdeviceptr pointer;

	stream_inside = cu.cuMemAlloc_v2(&pointer, 16);
	(void)usleep(30000);
	for (int i = 0; i < 10000 && !atomic_load(&stream_may_end); i++)
		(void)usleep(1000);
	atomic_fetch_add(&stream_called, *(int *)data);
}

static void stream_callback(CUstream stream, CUresult status, void *data)
{
	(void)stream;
	atomic_fetch_add(&stream_called, *(int *)data + status);
}

/* Work behind it waits for it; a call of the driver in it is not permitted. */
static void stream_host_function(void)
{
	CUstream stream = stream_make(1);
	CUevent event = NULL;
	int add = 5;

	atomic_store(&stream_called, 0);
	atomic_store(&stream_may_end, 0);
	stream_inside = -1;
	OK(cu.cuEventCreate(&event, 0));
	OK(cu.cuLaunchHostFunc(stream, stream_function, &add));
	OK(cu.cuEventRecord(event, stream));
	IS(600, cu.cuEventQuery(event));
	atomic_store(&stream_may_end, 1);
	OK(cu.cuEventSynchronize(event));
	IS(5, atomic_load(&stream_called));
	IS(800, stream_inside);
	IS(1, cu.cuLaunchHostFunc(stream, NULL, NULL));
	OK(cu.cuEventDestroy_v2(event));
	OK(cu.cuStreamDestroy_v2(stream));
}

static void stream_host_order(void)
{
	CUstream stream = stream_make(1);
	uint32_t value = 1, count = 1;
	int add = 7;

	atomic_store(&stream_called, 0);
	atomic_store(&stream_may_end, 1);
	stream_out = check_alloc(4);
	for (int i = 0; i < 5; i++) {
		OK(cu.cuLaunchHostFunc(stream, stream_function, &add));
		OK(check_launch("fill", 1, stream, PARAMETERS(&stream_out, &value, &count)));
	}
	OK(cu.cuStreamSynchronize(stream));
	IS(35, atomic_load(&stream_called));
	OK(cu.cuMemFree_v2(stream_out));
	OK(cu.cuStreamDestroy_v2(stream));
}

static void stream_add_callback(void)
{
	CUstream stream = stream_make(1);
	int add = 3;

	atomic_store(&stream_called, 0);
	OK(cu.cuStreamAddCallback(stream, stream_callback, &add, 0));
	OK(cu.cuStreamSynchronize(stream));
	IS(3, atomic_load(&stream_called));
	IS(1, cu.cuStreamAddCallback(stream, stream_callback, &add, 5));
	OK(cu.cuStreamDestroy_v2(stream));
}

/* Behind what fails it is called all the same, and told. */
static void stream_add_callback_behind_failure(void)
{
	CUstream stream = stream_make(1);
	uint32_t *gate = check_pinned(4096);
	int add = 1;

	atomic_store(&stream_called, 0);
	check_gate(gate, stream);
	OK(check_launch("trap", 1, stream, NULL));
	OK(cu.cuStreamAddCallback(stream, stream_callback, &add, 0));
	*(volatile uint32_t *)gate = 1;
	NOTE(cu.cuStreamSynchronize(stream));
	while (!atomic_load(&stream_called))
		(void)usleep(1000);
	NOTE(atomic_load(&stream_called) - 1);
}

static void stream_attributes(void)
{
	CUstream stream = stream_make(0), other = stream_make(0);
	CUstreamAttrValue value;

	memset(&value, 0, sizeof(value));
	OK(cu.cuStreamGetAttribute(stream, 3, &value));
	NOTE(value.sync_policy);
	value.sync_policy = 3;
	OK(cu.cuStreamSetAttribute(stream, 3, &value));
	value.sync_policy = 0;
	OK(cu.cuStreamGetAttribute(stream, 3, &value));
	NOTE(value.sync_policy);
	OK(cu.cuStreamCopyAttributes(other, stream));
	value.sync_policy = 0;
	OK(cu.cuStreamGetAttribute(other, 3, &value));
	NOTE(value.sync_policy);
	NOTE(cu.cuStreamGetAttribute(stream, 99, &value));
	OK(cu.cuStreamDestroy_v2(stream));
	OK(cu.cuStreamDestroy_v2(other));
}

static void stream_attach(void)
{
	CUstream stream = stream_make(0);
	CUdeviceptr pointer = check_alloc(4096);

	NOTE(cu.cuStreamAttachMemAsync(stream, pointer, 0, 4));
	OK(cu.cuMemFree_v2(pointer));
	OK(cu.cuStreamDestroy_v2(stream));
}

/* 2,000 launches in one stream, in order. */
static void stream_long(void)
{
	CUdeviceptr out = check_alloc(4);
	CUstream stream = stream_make(1);
	uint32_t count = 1;
	int failed = 0;

	for (uint32_t i = 0; i < 2000; i++)
		failed += check_launch("fill", 1, stream, PARAMETERS(&out, &i, &count)) != 0;
	OK(cu.cuStreamSynchronize(stream));
	IS(0, failed);
	IS(1999, check_word(out));
	OK(cu.cuStreamDestroy_v2(stream));
	OK(cu.cuMemFree_v2(out));
}

static void stream_many(void)
{
	CUstream streams[100];
	int failed = 0;

	for (int i = 0; i < 100; i++) {
		failed += cu.cuStreamCreate(&streams[i], 1) != 0;
		failed += check_launch("nop", 1, streams[i], NULL) != 0;
	}
	for (int i = 0; i < 100; i++)
		failed += cu.cuStreamSynchronize(streams[i]) || cu.cuStreamDestroy_v2(streams[i]);
	IS(0, failed);
}

static void *stream_open(void *pinned)
{
	CUstream stream = NULL;

	(void)cu.cuCtxSetCurrent(context);
	(void)usleep(20000);
	(void)cu.cuStreamCreate(&stream, 1);
	(void)cu.cuMemsetD32Async((uintptr_t)pinned, 1, 1, stream);
	return NULL;
}

/* What the one waits for is done by a call of another. */
static void stream_destroyed_elsewhere(void)
{
	uint32_t *pinned = check_pinned(4096);
	CUstream stream = stream_make(1);
	pthread_t thread;

	check_gate(pinned, stream);
	OK(cu.cuStreamDestroy_v2(stream));
	(void)pthread_create(&thread, NULL, stream_open, pinned);
	OK(cu.cuCtxSynchronize());
	IS(1, *(volatile uint32_t *)pinned);
	(void)pthread_join(thread, NULL);
	OK(cu.cuMemFreeHost(pinned));
}

static CUstream stream_shared;

static void *stream_spin(void *nothing)
{
	unsigned long long clocks = 40000000;

	(void)cu.cuCtxSetCurrent(context);
	(void)check_launch("spin", 1, stream_shared, PARAMETERS(&clocks));
	return nothing;
}

/* A copy to ordinary memory has been waited for when it returns; what came after it, by whomever, has not. */
static void stream_wait_behind_copy(void)
{
	CUdeviceptr pointer = check_alloc(4096);
	uint32_t word = 0;
	pthread_t thread;

	OK(cu.cuStreamCreate(&stream_shared, 1));
	OK(cu.cuMemsetD32Async(pointer, 7, 1, stream_shared));
	OK(cu.cuMemcpyDtoHAsync_v2(&word, pointer, 4, stream_shared));
	OK(cu.cuStreamSynchronize(stream_shared));
	IS(7, word);
	OK(cu.cuMemcpyDtoHAsync_v2(&word, pointer, 4, stream_shared));
	(void)stream_spin(NULL);
	OK(cu.cuStreamSynchronize(stream_shared));
	OK(cu.cuStreamQuery(stream_shared));
	OK(cu.cuMemcpyDtoHAsync_v2(&word, pointer, 4, stream_shared));
	(void)pthread_create(&thread, NULL, stream_spin, NULL);
	(void)pthread_join(thread, NULL);
	OK(cu.cuStreamSynchronize(stream_shared));
	OK(cu.cuStreamQuery(stream_shared));
	OK(cu.cuStreamDestroy_v2(stream_shared));
	OK(cu.cuMemFree_v2(pointer));
}

const struct check stream_checks[] = {
	{"made and destroyed", stream_create, false},
	{"priorities", stream_priorities, false},
	{"identity, context, device", stream_identity, false},
	{"query", stream_query, false},
	{"destroyed with work", stream_destroyed, false},
	{"destroying the default one", stream_destroy_default, true},
	{"the legacy one and blocking ones wait for each other", stream_legacy_waits, false},
	{"the legacy one and others do not", stream_not_blocking, false},
	{"two run side by side", stream_two, false},
	{"waiting for an event", stream_wait, false},
	{"waiting for an event that was never recorded", stream_wait_never_recorded, false},
	{"a function of the host", stream_host_function, false},
	{"functions of the host, in order", stream_host_order, false},
	{"a callback", stream_add_callback, false},
	{"a callback behind a failure", stream_add_callback_behind_failure, true},
	{"attributes", stream_attributes, false},
	{"attaching what is not managed", stream_attach, false},
	{"2000 launches", stream_long, false},
	{"destroyed with work that another thread ends", stream_destroyed_elsewhere, true},
	{"100 of them", stream_many, false},
	{"waiting behind a copy", stream_wait_behind_copy, false},
	END,
};
