/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Which arrays texture and surface references are bound to. The driver looks at a reference's array when a kernel
 * starts, so an array that the client ends is kept until no reference is bound to it any more, and counts as long.
 */

#include <pthread.h>
#include <stdlib.h>

#include "vcuda/driver_api.h"
#include "vcuda/server/arena.h"
#include "vcuda/server/driver.h"
#include "vcuda/server/handle.h"
#include "vcuda/server/quota.h"

enum { BOUND_HASH = 1024 };

struct bound {
	struct bound *next;
	uint64_t reference, module, library, context; /* with whose end it ends */
	uint64_t root, real; /* what has its memory: the array, or that of whose levels it is one */
	bool ended;          /* the client has it no more */
};

/* What a module's end lets go of is let go of by its lane, beside others. */
static pthread_mutex_t bound_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct bound *bounds[BOUND_HASH];
static uint32_t bound_count;

static struct bound **bound_find(uint64_t reference)
{
	struct bound **at = &bounds[wire_handle_index(reference) % BOUND_HASH];

	while (*at && (*at)->reference != reference)
		at = &(*at)->next;
	return at;
}

static struct bound *bound_take_out(struct bound **at)
{
	struct bound *bound = *at;

	*at = bound->next;
	bound_count--;
	return bound;
}

static bool bound_has(uint64_t root)
{
	for (unsigned i = 0; i < BOUND_HASH && bound_count > 0; i++)
		for (const struct bound *bound = bounds[i]; bound; bound = bound->next)
			if (bound->root == root)
				return true;
	return false;
}

/* Ends the array in the driver, when the last user of an array that the client has ended is gone. */
static void bound_end_array(const struct bound *bound)
{
	struct object_ref context;
	CUcontext popped;

	/* Of a context that ends, it goes with that. */
	if (handle_take(bound->context, &context)) {
		const bool pushed = !driver.cuCtxPushCurrent_v2(context.real);

		(void)(wire_handle_type(bound->root) == WIRE_ARRAY ? driver.cuArrayDestroy(bound->real)
								   : driver.cuMipmappedArrayDestroy(bound->real));
		if (pushed)
			(void)driver.cuCtxPopCurrent_v2(&popped);
		object_ref_let_go(context);
	}
	(void)quota_forget(QUOTA_ARRAY, bound->root);
	driver_memory_set_dirty();
}

/* What a reference was bound to, it is no more. */
static void bound_let_go(struct bound *bound)
{
	bool last;

	if (!bound)
		return;
	(void)pthread_mutex_lock(&bound_mutex);
	last = bound->ended && !bound_has(bound->root);
	(void)pthread_mutex_unlock(&bound_mutex);
	if (last)
		bound_end_array(bound);
	free(bound);
}

bool bound_keeps(uint64_t array)
{
	bool kept = false;

	(void)pthread_mutex_lock(&bound_mutex);
	for (unsigned i = 0; i < BOUND_HASH && bound_count > 0; i++)
		for (struct bound *bound = bounds[i]; bound; bound = bound->next)
			if (bound->root == array)
				kept = bound->ended = true;
	(void)pthread_mutex_unlock(&bound_mutex);
	return kept;
}

static bool bound_ends_with(const struct bound *bound, uint64_t ended)
{
	return bound->reference == ended || bound->module == ended || bound->library == ended ||
	       bound->context == ended;
}

/* Return: the next one that ends with what has ended, taken out; NULL: there is none. */
static struct bound *bound_next(uint64_t ended)
{
	struct bound *found = NULL;

	(void)pthread_mutex_lock(&bound_mutex);
	for (unsigned i = 0; i < BOUND_HASH && bound_count > 0 && !found; i++)
		for (struct bound **at = &bounds[i]; *at && !found;)
			if (bound_ends_with(*at, ended))
				found = bound_take_out(at);
			else
				at = &(*at)->next;
	(void)pthread_mutex_unlock(&bound_mutex);
	return found;
}

void bound_forget(uint64_t ended)
{
	struct bound *bound;

	while ((bound = bound_next(ended)))
		if (wire_handle_type(ended) == WIRE_CONTEXT)
			free(bound);
		else
			bound_let_go(bound);
}

/* ---- binding ---- */

static uint64_t bound_root(uint64_t array)
{
	for (uint64_t parent; (parent = handle_parent(array));)
		array = parent;
	return array;
}

struct bound *bound_prepare(uint64_t reference, uint64_t array)
{
	struct bound *bound = calloc(1, sizeof(*bound));

	if (!bound)
		return NULL;
	*bound = (struct bound){.reference = reference,
				.module = handle_parent(reference),
				.context = handle_context(array),
				.root = bound_root(array)};
	bound->library = bound->module ? handle_parent(bound->module) : 0;
	if (handle_look(bound->root, wire_handle_type(bound->root), &bound->real))
		return bound;
	free(bound);
	return NULL;
}

void bound_bind(uint64_t reference, struct bound *bound)
{
	struct bound **at, *before = NULL;

	(void)pthread_mutex_lock(&bound_mutex);
	at = bound_find(reference);
	if (*at)
		before = bound_take_out(at);
	if (bound) {
		bound->next = *at;
		*at = bound;
		bound_count++;
	}
	(void)pthread_mutex_unlock(&bound_mutex);
	bound_let_go(before);
}
