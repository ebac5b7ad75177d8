/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Memory and events of another process, with SHARED=FILE, in which they lie from when a process has made a handle of them.
 * What a driver finds by its handle, this one finds by an offset.
 */

#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sim.h"

enum {
	PAGE = 4096,
	LAZY_PEERS = 1,
	EVENT_INTERPROCESS = 4,
	EVENT_BYTES = 64,
	EVENTS_BYTES = 1 << 20,
	MAGIC_MEMORY = 0x6d656d,
	MAGIC_EVENT = 0x657674
};

struct ipc_handle {
	uint64_t magic, offset, size;
	int64_t pid;
	char rest[32];
};
_Static_assert(sizeof(struct ipc_handle) == sizeof(CUipcMemHandle), "one is copied to the other");

static int ipc_file = -1;
static _Atomic uint64_t *ipc_next; /* where the file's free part begins, in its first page */

__attribute__((constructor)) static void ipc_open_file(void)
{
	const char *path = config_value("SHARED");

	ipc_file = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
	if (ipc_file < 0)
		return;
	ipc_next = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, ipc_file, 0);
	if (ipc_next == MAP_FAILED)
		abort();
}

static size_t ipc_round(size_t size)
{
	return (size + PAGE - 1) & ~(size_t)(PAGE - 1);
}

/*
 * With EVENTS=shm a process's events are in a file of its own, by whatever shm_open() is here: in a server, the server's.
 * It stays, so that the test sees where it was made.
 */
static struct shared_event *ipc_open_event(int64_t process, uint64_t offset)
{
	const bool make = process == getpid() && offset == 0;
	char name[64];
	void *memory;
	int fd;

	(void)snprintf(name, sizeof(name), "/cuda.shm.sim.%llx", (long long)process);
	fd = shm_open(name, O_RDWR | (make ? O_CREAT | O_EXCL : 0), 0600);
	if (fd < 0 || (make && ftruncate(fd, EVENTS_BYTES) < 0))
		return NULL;
	memory = mmap(NULL, EVENTS_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	(void)close(fd);
	return memory == MAP_FAILED ? NULL : (struct shared_event *)(void *)((char *)memory + offset);
}

/* Return: where in the file, from 0 on. */
static uint64_t ipc_take_event(void)
{
	static _Atomic uint64_t next;

	return next++ * EVENT_BYTES % EVENTS_BYTES;
}

static bool ipc_has_files(void)
{
	const char *events = config_value("EVENTS");

	return events && strcmp(events, "shm") == 0;
}

/* The file is as large as all of it from the beginning. Its first page is the counter's. */
static uint64_t ipc_take(size_t size)
{
	return PAGE + atomic_fetch_add(ipc_next, ipc_round(size));
}

static void *ipc_map(void *at, uint64_t offset, size_t size)
{
	void *memory = mmap(at, ipc_round(size), PROT_READ | PROT_WRITE, MAP_SHARED | (at ? MAP_FIXED : 0), ipc_file,
			    (off_t)offset);

	if (memory == MAP_FAILED)
		abort();
	return memory;
}

/* ---- memory ---- */

/* In the page before it: whether its process has it still. */
static bool *ipc_alive(uint64_t offset)
{
	return ipc_map(NULL, offset - PAGE, 1);
}

static void ipc_set_alive(uint64_t offset, bool alive)
{
	bool *there = ipc_alive(offset);

	*there = alive;
	(void)munmap(there, PAGE);
}

void ipc_forget(const struct range *range)
{
	if (range->shared && range->kind != RANGE_TAKEN)
		ipc_set_alive(range->shared, false);
}

static void ipc_move(struct range *range)
{
	uint64_t offset = ipc_take(PAGE + range->size) + PAGE;
	void *memory = ipc_map(NULL, offset, range->size);

	memcpy(memory, (void *)range->start, range->size);
	(void)munmap(memory, ipc_round(range->size));
	(void)ipc_map((void *)range->start, offset, range->size);
	range->shared = offset;
	ipc_set_alive(offset, true);
}

CUresult cuIpcGetMemHandle(CUipcMemHandle *ret, CUdeviceptr pointer)
{
	struct ipc_handle handle = {.magic = MAGIC_MEMORY, .pid = getpid()};
	struct range *range;
	CUcontext context;

	CALL_CONTEXT(context);
	range = address_map_find(pointer);
	LEAVE_IF(!ret || !range || range->kind != ADDRESS_MAP_DEVICE, CUDA_ERROR_INVALID_VALUE);
	LEAVE_IF(ipc_file < 0, CUDA_ERROR_NOT_SUPPORTED);
	if (!range->shared) {
		context_drain(context);
		ipc_move(range);
	}
	handle.offset = range->shared;
	handle.size = range->size;
	memcpy(ret, &handle, sizeof(handle));
	LEAVE(CUDA_SUCCESS);
}

CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *ret, CUipcMemHandle from, unsigned flags)
{
	struct ipc_handle handle;
	struct range *range;
	CUcontext context;
	bool *alive, lives;

	CALL_CONTEXT(context);
	memcpy(&handle, &from, sizeof(handle));
	LEAVE_IF(!ret || flags != LAZY_PEERS || handle.magic != MAGIC_MEMORY, CUDA_ERROR_INVALID_VALUE);
	LEAVE_IF(handle.pid == getpid(), CUDA_ERROR_INVALID_CONTEXT);
	range = range_shared(handle.offset);
	alive = ipc_alive(handle.offset);
	lives = *alive;
	(void)munmap(alive, PAGE);
	LEAVE_IF(!range && !lives, CUDA_ERROR_INVALID_VALUE);
	if (!range) {
		range = address_map_add(RANGE_TAKEN, ipc_map(NULL, handle.offset, handle.size), handle.size, context);
		range->shared = handle.offset;
	}
	range->opened++;
	*ret = range->start;
	LEAVE(CUDA_SUCCESS);
}

CUresult cuIpcOpenMemHandle(CUdeviceptr *ret, CUipcMemHandle handle, unsigned flags)
{
	return cuIpcOpenMemHandle_v2(ret, handle, flags);
}

CUresult cuIpcCloseMemHandle(CUdeviceptr pointer)
{
	struct range *range;
	CUcontext context;

	CALL_CONTEXT(context);
	range = address_map_find(pointer);
	LEAVE_IF(!range || range->kind != RANGE_TAKEN || range->start != pointer, CUDA_ERROR_INVALID_VALUE);
	context_drain(context);
	if (--range->opened == 0) {
		(void)munmap((void *)range->start, ipc_round(range->size));
		address_map_remove(range);
	}
	LEAVE(CUDA_SUCCESS);
}

/* ---- events ---- */

CUresult cuIpcGetEventHandle(CUipcEventHandle *ret, CUevent event)
{
	struct ipc_handle handle = {.magic = MAGIC_EVENT, .size = sizeof(*event->shared), .pid = getpid()};
	CUcontext context;

	CALL_CONTEXT(context);
	LEAVE_IF(!object_is(event, OBJECT_EVENT) || !(event->flags & EVENT_INTERPROCESS), CUDA_ERROR_INVALID_HANDLE);
	LEAVE_IF(!ret, CUDA_ERROR_INVALID_VALUE);
	LEAVE_IF(ipc_file < 0, CUDA_ERROR_NOT_SUPPORTED);
	if (!event->shared) {
		event->shared_at = ipc_has_files() ? ipc_take_event() : ipc_take(sizeof(*event->shared));
		event->shared = ipc_has_files() ? ipc_open_event(getpid(), event->shared_at)
						: ipc_map(NULL, event->shared_at, sizeof(*event->shared));
	}
	LEAVE_IF(!event->shared, 205);
	handle.offset = event->shared_at;
	memcpy(ret, &handle, sizeof(handle));
	LEAVE(CUDA_SUCCESS);
}

CUresult cuIpcOpenEventHandle(CUevent *ret, CUipcEventHandle from)
{
	struct ipc_handle handle;
	struct shared_event *shared;
	CUcontext context;

	CALL_CONTEXT(context);
	memcpy(&handle, &from, sizeof(handle));
	LEAVE_IF(!ret, CUDA_ERROR_INVALID_VALUE);
	LEAVE_IF(handle.magic != MAGIC_EVENT, 205);
	LEAVE_IF(handle.pid == getpid(), CUDA_ERROR_INVALID_CONTEXT);
	shared =
		ipc_has_files() ? ipc_open_event(handle.pid, handle.offset) : ipc_map(NULL, handle.offset, handle.size);
	LEAVE_IF(!shared, 205);
	*ret = object_new(OBJECT_EVENT, sizeof(**ret), context);
	(*ret)->flags = EVENT_INTERPROCESS | 2;
	(*ret)->shared = shared;
	(*ret)->taken = true;
	LEAVE(CUDA_SUCCESS);
}

bool ipc_is_pending(const CUevent event)
{
	return event->taken && event->shared->begun != event->shared->done;
}

void ipc_wait(const struct shared_event *event, unsigned begun)
{
	while ((int)(begun - event->done) > 0)
		(void)usleep(100);
}
