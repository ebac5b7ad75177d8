/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One table for all kinds. A place that is used again has another generation, so a handle that was dropped is never
 * taken for a later one's. Several threads use it.
 */

#include "vcuda/server/handle.h"

#include <pthread.h>
#include <sys/mman.h>

#include "vcuda/driver_api.h"
#include "vcuda/server/driver.h"
#include "vcuda/server/overhead.h"

enum { HANDLES = 1 << 20, HANDLE_HASH = 1 << 16, HANDLE_ROOM = 2 * WIRE_SLOTS };

struct handle {
	_Atomic uint64_t handle; /* 0: free; written last when it is given, first when it is taken */
	_Atomic uint64_t real;
	uint64_t parent, context;
	uint32_t generation, next; /* next: place + 1 of another with the same hash, or of the next free one */
	uint32_t thread;           /* of a stream of a thread's own: its slot + 1 */
	uint32_t holders;
	bool busy; /* of a stream: something was asked of it since it was last seen to have no work */
};

static pthread_mutex_t handle_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct handle *handles;
static _Atomic uint32_t handle_count, handle_used; /* places that were ever used, and those that are */
static uint32_t handle_free;                       /* free: place + 1 */
static uint32_t handle_busy;                       /* how many streams are */
static uint32_t handle_hash[HANDLE_HASH];

static void handle_unlock(pthread_mutex_t *const *mutex)
{
	(void)pthread_mutex_unlock(*mutex);
}

#define HANDLE_HOLD()                                                                 \
	pthread_mutex_t *const held __attribute__((cleanup(handle_unlock), unused)) = \
		((void)pthread_mutex_lock(&handle_mutex), &handle_mutex)

static uint32_t handle_hash_of(enum wire_type type, uint64_t real)
{
	const uint64_t mixed = (real + (uint64_t)type * 0x9e3779b97f4a7c15) * 0xff51afd7ed558ccd;

	return (uint32_t)(mixed >> 48);
}

static struct handle *handle_find(uint64_t handle)
{
	const uint32_t index = wire_handle_index(handle);

	return index < handle_count && handle && handles[index].handle == handle ? &handles[index] : NULL;
}

static struct handle *handle_find_real(enum wire_type type, uint64_t real)
{
	for (uint32_t place = handle_hash[handle_hash_of(type, real)]; place; place = handles[place - 1].next)
		if (handles[place - 1].real == real && wire_handle_type(handles[place - 1].handle) == type)
			return &handles[place - 1];
	return NULL;
}

/* The table never moves, so that looking needs no lock. */
static struct handle *handle_take_place(void)
{
	struct handle *handle;

	if (handle_free) {
		handle = &handles[handle_free - 1];
		handle_free = handle->next;
		return handle;
	}
	if (!handles) {
		handles = mmap(NULL, HANDLES * sizeof(*handles), PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (handles == MAP_FAILED)
			handles = NULL;
	}
	if (!handles || handle_count == HANDLES)
		return NULL;
	return &handles[handle_count++];
}

/* What a thread has made may belong to what another has ended meanwhile. */
static struct handle *handle_new(enum wire_type type, uint64_t real, uint64_t parent, uint64_t context)
{
	const bool ended = (parent && !handle_find(parent)) || (context && !handle_find(context));
	struct handle *handle = ended ? NULL : handle_take_place();
	uint32_t *first, index;

	if (!handle)
		return NULL;
	handle_used++;
	index = (uint32_t)(handle - handles);
	handle->generation = (handle->generation + 1) & 0xffffff;
	handle->real = real;
	handle->parent = parent;
	handle->context = context;
	handle->thread = handle->holders = 0;
	handle->busy = false;
	handle->handle = wire_handle(type, handle->generation, index, wire_handle_tag_of(context));
	first = &handle_hash[handle_hash_of(type, real)];
	handle->next = *first;
	*first = index + 1;
	return handle;
}

bool handle_has_room(void)
{
	return handle_used <= HANDLES - HANDLE_ROOM;
}

uint64_t handle_give(enum wire_type type, uint64_t real, uint64_t parent, uint64_t context)
{
	struct handle *handle;

	HANDLE_HOLD();
	handle = handle_find_real(type, real);
	if (!handle)
		handle = handle_new(type, real, parent, context);
	return handle ? handle->handle : 0;
}

/* It comes before the older one in its list, so that it is found from now on. */
uint64_t handle_make(enum wire_type type, uint64_t real, uint64_t parent, uint64_t context)
{
	const struct handle *handle;

	HANDLE_HOLD();
	handle = handle_new(type, real, parent, context);
	return handle ? handle->handle : 0;
}

uint64_t handle_known(enum wire_type type, uint64_t real)
{
	const struct handle *handle;

	HANDLE_HOLD();
	handle = handle_find_real(type, real);
	return handle ? handle->handle : 0;
}

bool handle_look(uint64_t value, enum wire_type type, uint64_t *ret)
{
	const enum wire_type is = wire_handle_type(value);
	const struct handle *handle;

	if (is != type && !(type == WIRE_FUNC && is == WIRE_KERNEL))
		return false;
	handle = handle_find(value);
	if (!handle)
		return false;
	*ret = handle->real;
	return handle->handle == value;
}

uint64_t handle_context(uint64_t value)
{
	const struct handle *handle;

	HANDLE_HOLD();
	handle = handle_find(value);
	return handle ? handle->context : 0;
}

uint64_t handle_parent(uint64_t value)
{
	const struct handle *handle;

	HANDLE_HOLD();
	handle = handle_find(value);
	return handle ? handle->parent : 0;
}

static void handle_unlink(struct handle *handle)
{
	const uint32_t place = (uint32_t)(handle - handles) + 1;
	uint32_t *at = &handle_hash[handle_hash_of(wire_handle_type(handle->handle), handle->real)];

	while (*at && *at != place)
		at = &handles[*at - 1].next;
	if (*at)
		*at = handle->next;
	handle_busy -= handle->busy;
	handle_used--;
	handle->handle = 0;
	handle->real = handle->parent = 0;
	handle->next = handle_free;
	handle_free = place;
}

/* A handle that was dropped is never found again, so those below it are known by what they name. */
static bool handle_drop_orphans(void)
{
	bool dropped = false;

	for (uint32_t i = 0; i < handle_count; i++)
		if (handles[i].handle && handles[i].parent && !handle_find(handles[i].parent)) {
			handle_unlink(&handles[i]);
			dropped = true;
		}
	return dropped;
}

void handle_drop(uint64_t value)
{
	struct handle *handle;
	enum wire_type type;

	HANDLE_HOLD();
	handle = handle_find(value);
	if (!handle)
		return;
	type = wire_handle_type(value);
	handle_unlink(handle);
	/* These have nothing below them; of streams see handle_drop_captures(). */
	if (type == WIRE_STREAM || type == WIRE_EVENT || type == WIRE_EXEC || type == WIRE_MEMORY)
		return;
	for (uint32_t i = 0; type == WIRE_CONTEXT && i < handle_count; i++)
		if (handles[i].handle && handles[i].context == value)
			handle_unlink(&handles[i]);
	while (handle_drop_orphans())
		;
}

void handle_own(uint64_t value)
{
	struct handle *handle;

	HANDLE_HOLD();
	handle = handle_find(value);
	if (handle)
		handle->parent = 0;
}

void handle_drop_captures(void)
{
	HANDLE_HOLD();
	for (uint32_t i = 0; i < handle_count; i++)
		if (wire_handle_type(handles[i].handle) == WIRE_GRAPH &&
		    wire_handle_type(handles[i].parent) == WIRE_STREAM)
			handle_unlink(&handles[i]);
	while (handle_drop_orphans())
		;
}

void handle_hold(uint64_t value)
{
	struct handle *handle;

	HANDLE_HOLD();
	handle = handle_find(value);
	if (handle)
		handle->holders++;
}

bool handle_let_go(uint64_t value)
{
	struct handle *handle;

	HANDLE_HOLD();
	handle = handle_find(value);
	if (!handle || --handle->holders > 0)
		return false;
	handle_unlink(handle);
	return true;
}

CUresult handle_thread_stream(uint32_t thread, uint64_t context, CUstream *ret)
{
	struct handle *handle;
	uint64_t stream = 0;
	CUresult r;

	HANDLE_HOLD();
	for (uint32_t i = 0; i < handle_count; i++)
		if (handles[i].handle && handles[i].thread == thread + 1 && handles[i].context == context) {
			handle_busy += !handles[i].busy;
			handles[i].busy = true;
			*ret = handles[i].real;
			return CUDA_SUCCESS;
		}
	r = driver.cuStreamCreate(&stream, 0);
	if (r)
		return r;
	handle = handle_new(WIRE_STREAM, stream, 0, context);
	if (!handle) {
		(void)driver.cuStreamDestroy_v2(stream);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	overhead_stir();
	handle->thread = thread + 1;
	handle->busy = true;
	handle_busy++;
	*ret = stream;
	return CUDA_SUCCESS;
}

bool handle_look_stream(uint64_t value, CUstream *ret)
{
	struct handle *handle;

	if (!handle_look(value, WIRE_STREAM, ret))
		return false;
	if (handles[wire_handle_index(value)].busy)
		return true;
	HANDLE_HOLD();
	handle = handle_find(value);
	if (handle && !handle->busy) {
		handle->busy = true;
		handle_busy++;
	}
	return handle;
}

void handle_rest(uint64_t value)
{
	struct handle *handle;

	HANDLE_HOLD();
	handle = handle_find(value);
	if (!handle || !handle->busy)
		return;
	handle->busy = false;
	handle_busy--;
}

static uint64_t handle_find_next(enum wire_type type, bool busy, uint64_t context, uint32_t *place, uint64_t *ret)
{
	HANDLE_HOLD();
	if (busy && !handle_busy)
		return 0;
	for (; *place < handle_count; (*place)++)
		if (wire_handle_type(handles[*place].handle) == type && handles[*place].context == context &&
		    handles[*place].busy >= busy) {
			*ret = handles[*place].real;
			return handles[(*place)++].handle;
		}
	return 0;
}

uint64_t handle_next(enum wire_type type, uint64_t context, uint32_t *place, uint64_t *ret)
{
	return handle_find_next(type, false, context, place, ret);
}

uint64_t handle_next_busy(uint64_t context, uint32_t *place, CUstream *ret)
{
	return handle_find_next(WIRE_STREAM, true, context, place, ret);
}
