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

/* ---- memory by descriptors ---- */

enum { DESCRIPTOR = 1 };

static const CUmemAllocationProp share_properties = {
	.type = 1, .requested_handle_types = DESCRIPTOR, .location = {1, 0}};

static void share_send_descriptor(int descriptor)
{
	char byte = 0;
	struct iovec data = {&byte, 1};
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = {.header = {.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(int))}};
	const struct msghdr message = {
		.msg_iov = &data, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};

	memcpy(CMSG_DATA(&control.header), &descriptor, sizeof(descriptor));
	if (sendmsg(share_ends[0], &message, MSG_NOSIGNAL) != 1)
		_exit(1);
}

static int share_receive_descriptor(void)
{
	char byte;
	struct iovec data = {&byte, 1};
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control;
	struct msghdr message = {
		.msg_iov = &data, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};
	int descriptor = -1;

	if (recvmsg(share_ends[1], &message, MSG_CMSG_CLOEXEC) != 1 || message.msg_controllen < sizeof(control.header))
		_exit(1);
	memcpy(&descriptor, CMSG_DATA(&control.header), sizeof(descriptor));
	return descriptor;
}

/* Return: what went wrong. */
static CUresult share_map(CUmemGenericAllocationHandle handle, CUdeviceptr *ret)
{
	const CUmemAccessDesc access = {{1, 0}, 3};
	CUresult r = cu.cuMemAddressReserve(ret, BYTES, 0, 0, 0);

	if (!r)
		r = cu.cuMemMap(*ret, BYTES, 0, handle, 0);
	return r ? r : cu.cuMemSetAccess(*ret, BYTES, &access, 1);
}

static CUresult share_unmap(CUdeviceptr pointer)
{
	const CUresult r = cu.cuMemUnmap(pointer, BYTES);

	return r ? r : cu.cuMemAddressFree(pointer, BYTES);
}

static void share_take_descriptor(void)
{
	CUmemGenericAllocationHandle handle = 0, again = 0;
	int descriptor = share_receive_descriptor();
	CUmemAllocationProp found = {0};
	CUdeviceptr pointer = 0, other = 0;

	share_note(cu.cuMemImportFromShareableHandle(&handle, (void *)(intptr_t)descriptor, DESCRIPTOR));
	share_note(cu.cuMemImportFromShareableHandle(&again, (void *)(intptr_t)descriptor, DESCRIPTOR));
	(void)close(descriptor);
	share_note(cu.cuMemGetAllocationPropertiesFromHandle(&found, handle));
	share_note(found.type);
	share_note(found.requested_handle_types);
	share_note(found.location.type);
	share_note(found.location.id);
	share_note(share_map(handle, &pointer));
	share_note(share_map(again, &other));
	share_note(cu.cuMemRelease(handle));
	share_note(share_word(pointer + 8));
	(void)cu.cuMemsetD32_v2(other + BYTES - 4, 815, 1);
	(void)cu.cuCtxSynchronize();
	share_note(share_word(pointer + BYTES - 4));
	share_note(share_unmap(pointer));
	share_note(cu.cuMemRelease(again));
	share_note(share_word(other + 8));
	share_note(share_unmap(other));
}

static void share_descriptor(void)
{
	CUmemGenericAllocationHandle handle = 0;
	CUdeviceptr pointer = 0;
	int descriptor = -1, again = -1;

	share_with(share_take_descriptor);
	OK(cu.cuMemCreate(&handle, BYTES, &share_properties, 0));
	OK(share_map(handle, &pointer));
	OK(cu.cuMemsetD32_v2(pointer, 4711, BYTES / 4));
	OK(cu.cuCtxSynchronize());
	OK(cu.cuMemExportToShareableHandle(&descriptor, handle, DESCRIPTOR, 0));
	OK(cu.cuMemExportToShareableHandle(&again, handle, DESCRIPTOR, 0));
	TRUE(descriptor >= 0 && again >= 0 && again != descriptor);
	(void)close(again);
	share_send_descriptor(descriptor);
	(void)close(descriptor);
	share_end();
	IS(815, share_word(pointer + BYTES - 4));
	OK(cu.cuMemRelease(handle));
	OK(share_unmap(pointer));
}

static void share_take_kept(void)
{
	CUmemGenericAllocationHandle handle = 0;
	int descriptor = share_receive_descriptor();
	CUdeviceptr pointer = 0;

	share_note(cu.cuMemImportFromShareableHandle(&handle, (void *)(intptr_t)descriptor, DESCRIPTOR));
	share_note(share_map(handle, &pointer));
	share_note(share_word(pointer + 8));
	share_meet(1);
	share_meet(1);
	share_note(share_word(pointer + 8));
	share_note(share_unmap(pointer));
	share_note(cu.cuMemRelease(handle));
}

/* What its process has released before another takes it. */
static void share_kept(void)
{
	CUmemGenericAllocationHandle handle = 0, other = 0;
	CUdeviceptr pointer = 0;
	int descriptor = -1;

	share_with(share_take_kept);
	OK(cu.cuMemCreate(&handle, BYTES, &share_properties, 0));
	OK(share_map(handle, &pointer));
	OK(cu.cuMemsetD32_v2(pointer, 4711, BYTES / 4));
	OK(cu.cuCtxSynchronize());
	OK(cu.cuMemExportToShareableHandle(&descriptor, handle, DESCRIPTOR, 0));
	OK(share_unmap(pointer));
	OK(cu.cuMemRelease(handle));
	share_send_descriptor(descriptor);
	share_meet(0);
	OK(cu.cuMemCreate(&other, BYTES, &share_properties, 0));
	OK(cu.cuMemRelease(other));
	(void)close(descriptor);
	OK(cu.cuMemCreate(&other, BYTES, &share_properties, 0));
	OK(cu.cuMemRelease(other));
	share_meet(0);
	share_end();
}

static void share_descriptor_wrongly(void)
{
	CUmemAllocationProp alone = share_properties;
	CUmemGenericAllocationHandle handle = 0, other = 0;
	int descriptor = -1, ends[2];
	CUdeviceptr pointer = 0;

	share_begin();
	alone.requested_handle_types = 0;
	OK(cu.cuMemCreate(&handle, BYTES, &share_properties, 0));
	OK(cu.cuMemCreate(&other, BYTES, &alone, 0));
	NOTE(cu.cuMemExportToShareableHandle(&descriptor, other, DESCRIPTOR, 0));
	NOTE(cu.cuMemExportToShareableHandle(&descriptor, handle, DESCRIPTOR, 1));
	NOTE(cu.cuMemExportToShareableHandle(&descriptor, handle, 0, 0));
	NOTE(cu.cuMemExportToShareableHandle(&descriptor, handle, 2, 0));
	NOTE(cu.cuMemExportToShareableHandle(NULL, handle, DESCRIPTOR, 0));
	OK(cu.cuMemRelease(other));
	NOTE(cu.cuMemImportFromShareableHandle(&other, (void *)(intptr_t)-1, DESCRIPTOR));
	NOTE(cu.cuMemImportFromShareableHandle(&other, (void *)(intptr_t)999, DESCRIPTOR));
	if (pipe(ends) == 0)
		NOTE(cu.cuMemImportFromShareableHandle(&other, (void *)(intptr_t)ends[0], DESCRIPTOR));
	OK(cu.cuMemExportToShareableHandle(&descriptor, handle, DESCRIPTOR, 0));
	NOTE(cu.cuMemImportFromShareableHandle(NULL, (void *)(intptr_t)descriptor, DESCRIPTOR));
	NOTE(cu.cuMemImportFromShareableHandle(&other, (void *)(intptr_t)descriptor, 2));
	/* In its own process. */
	NOTE(cu.cuMemImportFromShareableHandle(&other, (void *)(intptr_t)descriptor, DESCRIPTOR));
	(void)close(descriptor);
	OK(cu.cuMemRelease(handle));
	OK(share_map(other, &pointer));
	OK(share_unmap(pointer));
	OK(cu.cuMemRelease(other));
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
	int supported = 0;
	uint32_t *gate;

	share_with(share_take_event);
	OK(cu.cuDeviceGetAttribute(&supported, 125, 0));
	TRUE(supported);
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
	{"memory by a descriptor", share_descriptor, true},
	{"memory that a descriptor keeps", share_kept, true},
	{"descriptors wrongly", share_descriptor_wrongly, true},
	{"an event of another process", share_event, true},
	{"events that are not to be shared", share_event_wrongly, true},
	END,
};
