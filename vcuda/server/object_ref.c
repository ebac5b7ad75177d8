/* SPDX-License-Identifier: Apache-2.0 */

/* Few things are held at a time, so they have a table of their own, and what nobody waits for costs nothing. */

#include "vcuda/server/request.h"

#include <pthread.h>
#include <stdlib.h>

#include "vcuda/driver_api.h"
#include "vcuda/server/driver.h"

enum { OBJECT_REF_HASH = 256 };

struct held {
	struct held *next;
	struct object_ref hold;
	unsigned holders;
	bool ends;
	uint64_t context;
	CUresult (*end)(uint64_t real);
};

static pthread_mutex_t object_ref_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t object_ref_changed = PTHREAD_COND_INITIALIZER;
static struct held *helds[OBJECT_REF_HASH];

/* Where the entry is, or where one is to be put. */
static struct held **object_ref_find(struct object_ref hold)
{
	struct held **at = &helds[(hold.real >> 4 ^ hold.real >> 12 ^ hold.type) % OBJECT_REF_HASH];

	while (*at && ((*at)->hold.real != hold.real || (*at)->hold.type != hold.type))
		at = &(*at)->next;
	return at;
}

/* Return: NULL if memory is out. */
static struct held *object_ref_make(struct object_ref hold)
{
	struct held **at = object_ref_find(hold);

	if (*at)
		return *at;
	*at = calloc(1, sizeof(**at));
	if (*at)
		(*at)->hold = hold;
	return *at;
}

bool object_ref_take(struct object_ref hold)
{
	struct held *held;
	bool taken;

	if (hold.type == WIRE_NULL)
		return true;
	(void)pthread_mutex_lock(&object_ref_mutex);
	held = object_ref_make(hold);
	taken = held && !held->ends;
	if (taken)
		held->holders++;
	(void)pthread_mutex_unlock(&object_ref_mutex);
	return taken;
}

/* Return: the entry, taken out, if it has no user any more and is to be ended; NULL. */
static struct held *object_ref_take_out(struct object_ref hold)
{
	struct held **at = object_ref_find(hold), *held = *at;

	if (!held || --held->holders > 0)
		return NULL;
	/* Who waits for it, forgets it. */
	if (held->ends && !held->end) {
		(void)pthread_cond_broadcast(&object_ref_changed);
		return NULL;
	}
	*at = held->next;
	return held;
}

void object_ref_let_go(struct object_ref hold)
{
	struct held *held;
	CUcontext popped;

	if (hold.type == WIRE_NULL)
		return;
	(void)pthread_mutex_lock(&object_ref_mutex);
	held = object_ref_take_out(hold);
	(void)pthread_mutex_unlock(&object_ref_mutex);
	if (held && held->end) {
		const bool pushed = held->context && !driver.cuCtxPushCurrent_v2(held->context);

		(void)held->end(hold.real);
		if (pushed)
			(void)driver.cuCtxPopCurrent_v2(&popped);
	}
	free(held);
}

CUresult object_ref_end(struct object_ref hold, uint64_t context, CUresult (*end)(uint64_t real))
{
	struct held *held;

	(void)pthread_mutex_lock(&object_ref_mutex);
	held = *object_ref_find(hold);
	if (held) {
		held->ends = true;
		held->end = end;
		held->context = context;
	}
	(void)pthread_mutex_unlock(&object_ref_mutex);
	return held ? CUDA_SUCCESS : end(hold.real);
}

void object_ref_await(struct object_ref hold)
{
	struct held *held;

	(void)pthread_mutex_lock(&object_ref_mutex);
	held = object_ref_make(hold);
	if (held)
		held->ends = true;
	while (held && held->holders > 0)
		(void)pthread_cond_wait(&object_ref_changed, &object_ref_mutex);
	(void)pthread_mutex_unlock(&object_ref_mutex);
}

void object_ref_forget(struct object_ref hold)
{
	struct held **at, *held;

	(void)pthread_mutex_lock(&object_ref_mutex);
	at = object_ref_find(hold);
	held = *at;
	if (held)
		*at = held->next;
	(void)pthread_mutex_unlock(&object_ref_mutex);
	free(held);
}
