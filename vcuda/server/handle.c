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
#include "vcuda/server/quota.h"

enum { HANDLE_HASH = 1 << 16, HANDLE_ROOM = 2 * WIRE_SLOTS };

static pthread_mutex_t handle_mutex = PTHREAD_MUTEX_INITIALIZER;
struct handle *handle_table;
_Atomic uint32_t handle_count;
static _Atomic uint32_t handle_used; /* places that are */
static uint32_t handle_free;         /* free: place + 1 */
static uint32_t handle_busy;         /* how many streams are */
static uint32_t handle_hash[HANDLE_HASH];
static uint64_t handle_last[WIRE_SLOTS]; /* the stream of a thread's own that it used last */
static uint32_t handle_owns[WIRE_SLOTS]; /* place + 1 of the first of those that it has */

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

	return index < handle_count && handle && handle_table[index].handle == handle ? &handle_table[index] : NULL;
}

static struct handle *handle_find_real(enum wire_type type, uint64_t real)
{
	for (uint32_t place = handle_hash[handle_hash_of(type, real)]; place; place = handle_table[place - 1].next)
		if (handle_table[place - 1].real == real && wire_handle_type(handle_table[place - 1].handle) == type)
			return &handle_table[place - 1];
	return NULL;
}

static struct handle *handle_take_place(void)
{
	struct handle *handle;

	if (handle_free) {
		handle = &handle_table[handle_free - 1];
		handle_free = handle->next;
		return handle;
	}
	if (!handle_table) {
		handle_table = mmap(NULL, WIRE_HANDLES * sizeof(*handle_table), PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (handle_table == MAP_FAILED)
			handle_table = NULL;
	}
	if (!handle_table || handle_count == WIRE_HANDLES)
		return NULL;
	return &handle_table[handle_count++];
}

/* ---- what ends with another ---- */

enum handle_list { HANDLE_BELOW, HANDLE_WITHIN };

static struct handle_link *handle_link_of(struct handle *handle, enum handle_list list)
{
	return list == HANDLE_BELOW ? &handle->below : &handle->within;
}

static uint32_t *handle_first_of(struct handle *owner, enum handle_list list)
{
	return list == HANDLE_BELOW ? &owner->first_below : &owner->first_within;
}

static struct handle *handle_at(uint32_t place)
{
	return place ? &handle_table[place - 1] : NULL;
}

static uint32_t handle_place_of(const struct handle *handle)
{
	return (uint32_t)(handle - handle_table) + 1;
}

/* @owner: NULL: none */
static void handle_join(struct handle *handle, struct handle *owner, enum handle_list list)
{
	struct handle_link *link = handle_link_of(handle, list);
	uint32_t *first = owner ? handle_first_of(owner, list) : NULL;

	*link = (struct handle_link){first ? *first : 0, 0};
	if (link->next)
		handle_link_of(handle_at(link->next), list)->before = handle_place_of(handle);
	if (first)
		*first = handle_place_of(handle);
}

/* @owner: NULL: none, or one that is gone, whose list goes on without it */
static void handle_leave(struct handle *handle, struct handle *owner, enum handle_list list)
{
	struct handle_link *link = handle_link_of(handle, list);

	if (link->before)
		handle_link_of(handle_at(link->before), list)->next = link->next;
	else if (owner)
		*handle_first_of(owner, list) = link->next;
	if (link->next)
		handle_link_of(handle_at(link->next), list)->before = link->before;
	*link = (struct handle_link){0, 0};
}

/* ---- giving ---- */

/* What a thread has made may belong to what another has ended meanwhile. @ret: what is still to be written */
static struct handle *handle_prepare(enum wire_type type, uint64_t real, uint64_t parent, uint64_t context,
				     uint64_t *ret)
{
	struct handle *const above = parent ? handle_find(parent) : NULL, *const around =
										  context ? handle_find(context) : NULL;
	const bool ended = (parent && !above) || (context && !around);
	struct handle *handle = ended ? NULL : handle_take_place();
	uint32_t *first, index;

	if (!handle)
		return NULL;
	handle_used++;
	index = (uint32_t)(handle - handle_table);
	handle->generation = (handle->generation + 1) & 0xffffff;
	handle->real = real;
	handle->parent = parent;
	handle->context = context;
	handle->thread = handle->holders = handle->first_below = handle->first_within = handle->next_hidden = 0;
	handle->busy = false;
	handle_join(handle, above, HANDLE_BELOW);
	handle_join(handle, around, HANDLE_WITHIN);
	*ret = wire_handle(type, handle->generation, index, wire_handle_tag_of(context));
	first = &handle_hash[handle_hash_of(type, real)];
	handle->next = *first;
	*first = index + 1;
	return handle;
}

static struct handle *handle_new(enum wire_type type, uint64_t real, uint64_t parent, uint64_t context)
{
	uint64_t value;
	struct handle *handle = handle_prepare(type, real, parent, context, &value);

	if (handle)
		handle->handle = value;
	return handle;
}

bool handle_has_room(void)
{
	return handle_used <= WIRE_HANDLES - HANDLE_ROOM;
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

uint64_t handle_make_hidden(enum wire_type type, uint64_t real)
{
	struct handle *handle;
	uint64_t value = 0;

	HANDLE_HOLD();
	handle = handle_prepare(type, real, 0, 0, &value);
	if (handle)
		handle->hidden = handle->hider = value;
	return value;
}

uint64_t handle_known(enum wire_type type, uint64_t real)
{
	const struct handle *handle;

	HANDLE_HOLD();
	handle = handle_find_real(type, real);
	return handle ? handle->handle : 0;
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

/* Return: the place of a handle, hidden or not. */
static struct handle *handle_place(uint64_t value)
{
	const uint32_t index = wire_handle_index(value);

	if (index < handle_count && value && handle_table[index].hidden == value)
		return &handle_table[index];
	return handle_find(value);
}

static void handle_leave_parent(struct handle *handle)
{
	handle_leave(handle, handle_place(handle->parent), HANDLE_BELOW);
	handle->parent = 0;
}

static void handle_disown(const struct handle *handle)
{
	uint32_t *at = &handle_owns[handle->thread - 1];

	while (*at && *at != (uint32_t)(handle - handle_table) + 1)
		at = &handle_table[*at - 1].next_own;
	if (*at)
		*at = handle->next_own;
}

static void handle_unlink(struct handle *handle)
{
	const uint32_t place = (uint32_t)(handle - handle_table) + 1;
	const enum wire_type type = wire_handle_type(handle->handle ? handle->handle : handle->hidden);
	uint32_t *at = &handle_hash[handle_hash_of(type, handle->real)];

	while (*at && *at != place)
		at = &handle_table[*at - 1].next;
	if (*at)
		*at = handle->next;
	if (handle->thread)
		handle_disown(handle);
	handle_leave_parent(handle);
	handle_leave(handle, handle_place(handle->context), HANDLE_WITHIN);
	handle->thread = 0;
	handle_busy -= handle->busy;
	handle_used--;
	handle->handle = 0;
	handle->real = handle->hidden = handle->hider = 0;
	handle->next = handle_free;
	handle_free = place;
}

/* ---- hiding ---- */

/* Behind @last. Return: what is the last now. */
static struct handle *handle_hide_one(struct handle *handle, uint64_t hider, struct handle *last)
{
	handle->hidden = handle->handle;
	handle->hider = hider;
	handle->handle = 0;
	handle->next_hidden = 0;
	if (last)
		last->next_hidden = handle_place_of(handle);
	return handle;
}

/* Those of a list that can be found: others are hidden for an end of their own. */
static struct handle *handle_hide_list(uint32_t first, enum handle_list list, uint64_t hider, struct handle *last)
{
	for (struct handle *one = handle_at(first); one; one = handle_at(handle_link_of(one, list)->next))
		if (one->handle)
			last = handle_hide_one(one, hider, last);
	return last;
}

/* With all that ends with it, which is behind it in its list. */
static void handle_hide_all(struct handle *handle)
{
	const uint64_t hider = handle->handle;
	struct handle *last = handle_hide_one(handle, hider, NULL);

	last = handle_hide_list(handle->first_within, HANDLE_WITHIN, hider, last);
	for (struct handle *one = handle; one; one = handle_at(one->next_hidden))
		last = handle_hide_list(one->first_below, HANDLE_BELOW, hider, last);
}

void handle_hide(uint64_t value)
{
	struct handle *handle;

	HANDLE_HOLD();
	handle = handle_find(value);
	if (handle)
		handle_hide_all(handle);
}

/* Behind what it ends with, and which another end hides. */
static void handle_hide_behind(struct handle *handle, struct handle *other)
{
	handle->hider = other->hider;
	handle->next_hidden = other->next_hidden;
	other->next_hidden = handle_place_of(handle);
}

/*
 * What it ends with may have ended, or may be about to, by itself. A parent that has the same hider is shown, too, but
 * may come later.
 */
static void handle_show_one(struct handle *handle)
{
	struct handle *const context = handle_place(handle->context), *const parent = handle_place(handle->parent);

	if ((handle->context && !context) || (handle->parent && !parent)) {
		handle_unlink(handle);
	} else if (context && context->hidden) {
		handle_hide_behind(handle, context);
	} else if (parent && parent->hidden && parent->hider != handle->hider) {
		handle_hide_behind(handle, parent);
	} else {
		handle->handle = handle->hidden;
		handle->hidden = handle->hider = 0;
	}
}

void handle_show(uint64_t value)
{
	struct handle *next;

	HANDLE_HOLD();
	next = handle_place(value);
	if (!next || !next->hidden || next->hider != value)
		return;
	for (struct handle *one = next; one; one = next) {
		next = handle_at(one->next_hidden);
		one->next_hidden = 0;
		handle_show_one(one);
	}
}

/* What was hidden for its own end goes with all that is behind it. */
static void handle_drop_hidden(struct handle *handle)
{
	for (struct handle *one = handle, *next; one; one = next) {
		next = handle_at(one->next_hidden);
		handle_unlink(one);
	}
}

void handle_drop(uint64_t value)
{
	struct handle *handle;

	HANDLE_HOLD();
	handle = handle_place(value);
	if (handle && !handle->hidden)
		handle_hide_all(handle);
	/* Else it goes with what hides it. */
	if (handle && handle->hider == value)
		handle_drop_hidden(handle);
}

void handle_own(uint64_t value)
{
	struct handle *handle;

	HANDLE_HOLD();
	handle = handle_find(value);
	if (handle)
		handle_leave_parent(handle);
}

void handle_drop_captures(void)
{
	HANDLE_HOLD();
	for (uint32_t i = 0; i < handle_count; i++)
		if (wire_handle_type(handle_table[i].handle) == WIRE_GRAPH &&
		    wire_handle_type(handle_table[i].parent) == WIRE_STREAM) {
			handle_hide_all(&handle_table[i]);
			handle_drop_hidden(&handle_table[i]);
		}
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

bool handle_look_stream(uint64_t value, CUstream *ret)
{
	struct handle *handle;

	if (!handle_look(value, WIRE_STREAM, ret))
		return false;
	if (handle_table[wire_handle_index(value)].busy)
		return true;
	HANDLE_HOLD();
	handle = handle_find(value);
	if (handle && !handle->busy) {
		handle->busy = true;
		handle_busy++;
	}
	return handle;
}

/* Return: the stream of a thread's own in a context, which may have work from now on; NULL: it has none yet. */
static struct handle *handle_use_own(uint32_t thread, uint64_t context)
{
	struct handle *handle = NULL;

	for (uint32_t place = handle_owns[thread]; place && !handle; place = handle_table[place - 1].next_own)
		if (handle_table[place - 1].handle && handle_table[place - 1].context == context)
			handle = &handle_table[place - 1];
	if (!handle)
		return NULL;
	handle_busy += !handle->busy;
	handle->busy = true;
	handle_last[thread] = handle->handle;
	return handle;
}

static bool handle_find_own(uint32_t thread, uint64_t context, CUstream *ret)
{
	const struct handle *handle;

	HANDLE_HOLD();
	handle = handle_use_own(thread, context);
	if (handle)
		*ret = handle->real;
	return handle;
}

static bool handle_make_own(uint32_t thread, uint64_t context, CUstream stream)
{
	struct handle *handle;

	HANDLE_HOLD();
	handle = handle_new(WIRE_STREAM, stream, 0, context);
	if (!handle)
		return false;
	handle->thread = thread + 1;
	handle->next_own = handle_owns[thread];
	handle_owns[thread] = (uint32_t)(handle - handle_table) + 1;
	return handle_use_own(thread, context);
}

/*
 * Return: the stream that stands for the null stream of a thread's own, made when it is first used: by the lane that
 * has the lead, so that no other makes a second one. The driver is called without the lock, for which it may wait
 * itself where it ends a user object.
 */
static CUresult handle_thread_stream(uint32_t thread, uint64_t context, CUstream *ret)
{
	const uint64_t last = handle_last[thread];
	CUstream stream = 0;
	CUresult r;

	if (last && handle_table[wire_handle_index(last)].context == context && handle_look_stream(last, ret))
		return CUDA_SUCCESS;
	if (handle_find_own(thread, context, ret))
		return CUDA_SUCCESS;
	r = driver.cuStreamCreate(&stream, 0);
	if (r)
		return r;
	/* As with streams that the client asks for, what the driver takes for it is known now. */
	if (!driver_memory_fits() || !handle_make_own(thread, context, stream)) {
		(void)driver.cuStreamDestroy_v2(stream);
		(void)driver_memory_count();
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*ret = stream;
	return CUDA_SUCCESS;
}

CUresult handle_find_stream(uint64_t value, uint32_t thread, uint64_t context, CUstream *ret)
{
	if (value == WIRE_STREAM_THREAD)
		return handle_thread_stream(thread, context, ret);
	if (value >= WIRE_STREAM_NAMES)
		return handle_look_stream(value, ret) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
	*ret = value;
	return CUDA_SUCCESS;
}

uint64_t handle_of_thread(uint32_t thread, uint64_t context)
{
	const uint64_t last = handle_last[thread];

	return last && handle_table[wire_handle_index(last)].context == context ? last : 0;
}

bool handle_rests(uint64_t value)
{
	CUstream stream;

	return handle_look(value, WIRE_STREAM, &stream) && !handle_table[wire_handle_index(value)].busy;
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
		if (wire_handle_type(handle_table[*place].handle) == type && handle_table[*place].context == context &&
		    handle_table[*place].busy >= busy) {
			*ret = handle_table[*place].real;
			return handle_table[(*place)++].handle;
		}
	return 0;
}

uint64_t handle_next(enum wire_type type, uint64_t context, uint32_t *place, uint64_t *ret)
{
	return handle_find_next(type, false, context, place, ret);
}

/*
 * Another thread may end it before it is held, and the driver may give its name to another object. A handle that is
 * there still is of what is held: it is taken from the client first.
 */
bool handle_take(uint64_t handle, struct object_ref *ret)
{
	const struct object_ref hold = handle_ref(handle);

	if (hold.type == WIRE_NULL || !object_ref_take(hold))
		return false;
	if (handle_ref(handle).type == WIRE_NULL) {
		object_ref_let_go(hold);
		return false;
	}
	*ret = hold;
	return true;
}

bool handle_take_next(enum wire_type type, uint64_t context, uint32_t *place, struct object_ref *ret)
{
	uint64_t handle, real;

	while ((handle = handle_next(type, context, place, &real)))
		if (handle_take(handle, ret))
			return true;
	return false;
}

uint64_t handle_next_busy(uint64_t context, uint32_t *place, CUstream *ret)
{
	return handle_find_next(WIRE_STREAM, true, context, place, ret);
}
