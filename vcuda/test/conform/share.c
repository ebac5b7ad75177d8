/* SPDX-License-Identifier: Apache-2.0 */

/* Memory and events of one process that another opens. This process gives, a child takes, which has written down what it got. */

#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

enum { TYPE = 2, ID = 7, CAN_BE_GIVEN = 10, START = 11, SIZE = 12, BYTES = 4 << 20, LAZY_PEERS = 1, RESULTS = 64 };

static int share_ends[2]; /* the giver's, the taker's */

/* What the taker got, for the giver to write down. */
static struct {
	int count;
	long long value[RESULTS];
} share_results;

static void share_note(long long value)
{
	if (share_results.count < RESULTS)
		share_results.value[share_results.count++] = value;
}

static void share_send(int end, const void *data, size_t bytes)
{
	if (send(share_ends[end], data, bytes, MSG_NOSIGNAL) != (ssize_t)bytes)
		_exit(1);
}

static void share_receive(int end, void *data, size_t bytes)
{
	if (recv(share_ends[end], data, bytes, MSG_WAITALL) != (ssize_t)bytes)
		_exit(1);
}

/* Until the other comes here, too. */
static void share_meet(int end)
{
	char byte = 0;

	share_send(end, &byte, 1);
	share_receive(end, &byte, 1);
}

static void share_begin(void)
{
	if (check_begin())
		_exit(1);
}

/* What the child does, before either has begun with the driver. */
static void share_with(void (*take)(void))
{
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, share_ends) < 0)
		_exit(1);
	if (fork() == 0) {
		(void)close(share_ends[0]);
		(void)alarm(25);
		share_begin();
		take();
		share_send(1, &share_results, sizeof(share_results));
		_exit(0);
	}
	(void)close(share_ends[1]);
	share_begin();
}

static void share_end(void)
{
	share_receive(0, &share_results, sizeof(share_results));
	for (int i = 0; i < share_results.count; i++)
		NOTE(share_results.value[i]);
	(void)close(share_ends[0]);
	(void)wait(NULL);
}

static uint32_t share_word(CUdeviceptr at)
{
	uint32_t word = 77;

	(void)cu.cuMemcpyDtoH_v2(&word, at, sizeof(word));
	return word;
}

/* ---- memory ---- */

static void share_take_memory(void)
{
	CUdeviceptr pointer = 0, again = 0, base = 0;
	CUipcMemHandle handle;
	uint64_t value = 0;
	size_t bytes = 0;

	share_receive(1, &handle, sizeof(handle));
	share_note(cu.cuIpcOpenMemHandle_v2(&pointer, handle, LAZY_PEERS));
	share_note(share_word(pointer + 8));
	(void)cu.cuMemsetD32_v2(pointer + BYTES - 4, 815, 1);
	(void)cu.cuCtxSynchronize();
	share_note(cu.cuIpcOpenMemHandle_v2(&again, handle, LAZY_PEERS));
	share_note(again == pointer);
	share_note(cu.cuMemGetAddressRange_v2(&base, &bytes, pointer + 100));
	share_note(base == pointer);
	share_note((long long)bytes);
	value = 0;
	share_note(cu.cuPointerGetAttribute(&value, TYPE, pointer));
	share_note((long long)value);
	value = 0;
	share_note(cu.cuPointerGetAttribute(&value, CAN_BE_GIVEN, pointer));
	share_note((long long)(value & 0xff));
	value = 0;
	share_note(cu.cuPointerGetAttribute(&value, SIZE, pointer));
	share_note((long long)value);
	share_note(cu.cuMemFree_v2(pointer));
	share_note(cu.cuIpcGetMemHandle(&handle, pointer));
	share_note(cu.cuIpcCloseMemHandle(pointer));
	share_note(share_word(pointer + 8));
	share_note(cu.cuIpcCloseMemHandle(pointer));
	share_note(cu.cuPointerGetAttribute(&value, TYPE, pointer));
	share_note(cu.cuIpcCloseMemHandle(pointer));
}

static void share_memory(void)
{
	CUipcMemHandle handle, again, middle;
	CUdeviceptr pointer;
	uint64_t value = 0;

	share_with(share_take_memory);
	pointer = check_alloc(BYTES);
	OK(cu.cuMemsetD32_v2(pointer, 4711, BYTES / 4));
	OK(cu.cuCtxSynchronize());
	OK(cu.cuPointerGetAttribute(&value, CAN_BE_GIVEN, pointer));
	NOTE(value & 0xff);
	OK(cu.cuIpcGetMemHandle(&handle, pointer));
	OK(cu.cuIpcGetMemHandle(&again, pointer));
	TRUE(memcmp(&handle, &again, sizeof(handle)) == 0);
	NOTE(cu.cuIpcGetMemHandle(&middle, pointer + 4096));
	share_send(0, &handle, sizeof(handle));
	share_end();
	IS(815, share_word(pointer + BYTES - 4));
	OK(cu.cuMemFree_v2(pointer));
}

static void share_take_small(void)
{
	CUipcMemHandle handles[2];
	CUdeviceptr pointers[2];

	share_receive(1, handles, sizeof(handles));
	for (int i = 0; i < 2; i++) {
		share_note(cu.cuIpcOpenMemHandle_v2(&pointers[i], handles[i], LAZY_PEERS));
		share_note(share_word(pointers[i]));
	}
	for (int i = 0; i < 2; i++)
		share_note(cu.cuIpcCloseMemHandle(pointers[i]));
}

/* Which share a page. */
static void share_small(void)
{
	CUipcMemHandle handles[2];
	CUdeviceptr pointers[2];

	share_with(share_take_small);
	for (int i = 0; i < 2; i++) {
		pointers[i] = check_alloc(1000);
		OK(cu.cuMemsetD32_v2(pointers[i], 100 + (unsigned)i, 4));
		OK(cu.cuIpcGetMemHandle(&handles[i], pointers[i]));
	}
	OK(cu.cuCtxSynchronize());
	share_send(0, handles, sizeof(handles));
	share_end();
}

static void share_take_freed(void)
{
	CUdeviceptr pointer = 0;
	CUipcMemHandle handle;

	share_receive(1, &handle, sizeof(handle));
	share_note(cu.cuIpcOpenMemHandle_v2(&pointer, handle, LAZY_PEERS));
	share_meet(1);
	share_meet(1);
	share_note(share_word(pointer));
	share_note(cu.cuIpcCloseMemHandle(pointer));
	share_note(cu.cuIpcOpenMemHandle_v2(&pointer, handle, LAZY_PEERS) != CUDA_SUCCESS);
}

static void share_freed(void)
{
	CUipcMemHandle handle;
	CUdeviceptr pointer;

	share_with(share_take_freed);
	pointer = check_alloc(BYTES);
	OK(cu.cuMemsetD32_v2(pointer, 4711, BYTES / 4));
	OK(cu.cuCtxSynchronize());
	OK(cu.cuIpcGetMemHandle(&handle, pointer));
	share_send(0, &handle, sizeof(handle));
	share_meet(0);
	OK(cu.cuMemFree_v2(pointer));
	share_meet(0);
	share_end();
}

static void share_wrongly(void)
{
	CUdeviceptr pointer, other = 0, pool = 0;
	CUipcMemHandle handle, zeros = {{0}};
	uint32_t *host;

	share_begin();
	pointer = check_alloc(BYTES);
	host = check_pinned(4096);
	NOTE(cu.cuIpcGetMemHandle(&handle, (uintptr_t)host));
	NOTE(cu.cuIpcGetMemHandle(&handle, (uintptr_t)&host));
	NOTE(cu.cuIpcGetMemHandle(&handle, 0));
	NOTE(cu.cuIpcGetMemHandle(NULL, pointer));
	OK(cu.cuMemAllocAsync(&pool, BYTES, NULL));
	NOTE(cu.cuIpcGetMemHandle(&handle, pool));
	OK(cu.cuIpcGetMemHandle(&handle, pointer));
	NOTE(cu.cuIpcOpenMemHandle_v2(&other, handle, LAZY_PEERS));
	NOTE(cu.cuIpcOpenMemHandle_v2(&other, handle, 0));
	NOTE(cu.cuIpcOpenMemHandle_v2(&other, zeros, LAZY_PEERS));
	NOTE(cu.cuIpcOpenMemHandle(&other, zeros, LAZY_PEERS));
	NOTE(cu.cuIpcCloseMemHandle(pointer));
	NOTE(cu.cuIpcCloseMemHandle(0));
	OK(cu.cuMemFree_v2(pointer));
}

/* ---- events ---- */

static void share_take_event(void)
{
	CUdeviceptr pointer = check_alloc(4);
	CUipcEventHandle handle;
	CUevent event = NULL;
	float time;

	share_receive(1, &handle, sizeof(handle));
	share_note(cu.cuIpcOpenEventHandle(&event, handle));
	share_note(cu.cuEventQuery(event));
	share_meet(1);
	share_meet(1);
	/* It has been recorded, and waits. */
	share_note(cu.cuEventQuery(event));
	share_note(cu.cuStreamWaitEvent(NULL, event, 0));
	share_note(cu.cuMemsetD32Async(pointer, 5, 1, NULL));
	share_note(cu.cuStreamQuery(NULL));
	share_meet(1);
	share_note(cu.cuEventSynchronize(event));
	share_note(cu.cuStreamSynchronize(NULL));
	share_note(share_word(pointer));
	share_note(cu.cuEventElapsedTime(&time, event, event));
	share_note(cu.cuEventDestroy_v2(event));
}

static void share_event(void)
{
	CUipcEventHandle handle, again;
	CUevent event = NULL, other = NULL;
	uint32_t *gate;

	share_with(share_take_event);
	gate = check_pinned(4096);
	OK(cu.cuEventCreate(&other, 2));
	NOTE(cu.cuIpcGetEventHandle(&handle, other));
	NOTE(cu.cuEventCreate(&other, 4));
	OK(cu.cuEventCreate(&event, 2 | 4));
	NOTE(cu.cuIpcGetEventHandle(NULL, event));
	OK(cu.cuIpcGetEventHandle(&handle, event));
	OK(cu.cuIpcGetEventHandle(&again, event));
	share_send(0, &handle, sizeof(handle));
	share_meet(0);
	check_gate(gate, NULL);
	OK(cu.cuEventRecord(event, NULL));
	IS(600, cu.cuEventQuery(event));
	share_meet(0);
	share_meet(0);
	*(volatile uint32_t *)gate = 1;
	OK(cu.cuEventSynchronize(event));
	share_end();
	OK(cu.cuEventDestroy_v2(event));
}

static void share_event_wrongly(void)
{
	CUipcEventHandle handle, zeros = {{0}};
	CUevent event = NULL, other = NULL;

	share_begin();
	OK(cu.cuEventCreate(&event, 2 | 4));
	OK(cu.cuIpcGetEventHandle(&handle, event));
	NOTE(cu.cuIpcOpenEventHandle(&other, handle));
	NOTE(cu.cuIpcOpenEventHandle(&other, zeros));
	OK(cu.cuEventDestroy_v2(event));
}

const struct check share_checks[] = {
	{"memory of another process", share_memory, true},
	{"small pieces of another process", share_small, true},
	{"memory that its process frees", share_freed, true},
	{"what is not to be shared", share_wrongly, true},
	{"an event of another process", share_event, true},
	{"events that are not to be shared", share_event_wrongly, true},
	END,
};
