/* SPDX-License-Identifier: Apache-2.0 */

/* Few things are held at a time, so they have a table of their own, and what nobody waits for costs nothing. */

#include "vcuda/server/hold.h"

#include <pthread.h>
#include <stdlib.h>

#include "vcuda/driver_api.h"
#include "vcuda/server/driver.h"

enum { HOLD_HASH = 256 };

struct held {
	struct held *next;
	struct hold hold;
	unsigned holders;
	bool ends;
	uint64_t context;
	CUresult (*end)(uint64_t real);
};

static pthread_mutex_t hold_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t hold_changed = PTHREAD_COND_INITIALIZER;
static struct held *helds[HOLD_HASH];

/* Where the entry is, or where one is to be put. */
static struct held **hold_find(struct hold hold)
{
	struct held **at = &helds[(hold.real >> 4 ^ hold.real >> 12 ^ hold.type) % HOLD_HASH];

	while (*at && ((*at)->hold.real != hold.real || (*at)->hold.type != hold.type))
		at = &(*at)->next;
	return at;
}

/* Return: NULL if memory is out. */
static struct held *hold_make(struct hold hold)
{
	struct held **at = hold_find(hold);

	if (*at)
		return *at;
	*at = calloc(1, sizeof(**at));
	if (*at)
		(*at)->hold = hold;
	return *at;
}

bool hold_take(struct hold hold)
{
	struct held *held;
	bool taken;

	if (hold.type == WIRE_NULL)
		return true;
	(void)pthread_mutex_lock(&hold_mutex);
	held = hold_make(hold);
	taken = held && !held->ends;
	if (taken)
		held->holders++;
	(void)pthread_mutex_unlock(&hold_mutex);
	return taken;
}

/* Return: what nobody holds any more, taken out; NULL if there is nothing to do. */
static struct held *hold_take_out(struct hold hold)
{
	struct held **at = hold_find(hold), *held = *at;

	if (!held || --held->holders > 0)
		return NULL;
	/* Who waits for it, forgets it. */
	if (held->ends && !held->end) {
		(void)pthread_cond_broadcast(&hold_changed);
		return NULL;
	}
	*at = held->next;
	return held;
}

void hold_let_go(struct hold hold)
{
	struct held *held;
	CUcontext popped;

	if (hold.type == WIRE_NULL)
		return;
	(void)pthread_mutex_lock(&hold_mutex);
	held = hold_take_out(hold);
	(void)pthread_mutex_unlock(&hold_mutex);
	if (held && held->end) {
		const bool pushed = held->context && !driver.cuCtxPushCurrent_v2(held->context);

		(void)held->end(hold.real);
		if (pushed)
			(void)driver.cuCtxPopCurrent_v2(&popped);
	}
	free(held);
}

CUresult hold_end(struct hold hold, uint64_t context, CUresult (*end)(uint64_t real))
{
	struct held *held;

	(void)pthread_mutex_lock(&hold_mutex);
	held = *hold_find(hold);
	if (held) {
		held->ends = true;
		held->end = end;
		held->context = context;
	}
	(void)pthread_mutex_unlock(&hold_mutex);
	return held ? CUDA_SUCCESS : end(hold.real);
}

void hold_await(struct hold hold)
{
	struct held *held;

	(void)pthread_mutex_lock(&hold_mutex);
	held = hold_make(hold);
	if (held)
		held->ends = true;
	while (held && held->holders > 0)
		(void)pthread_cond_wait(&hold_changed, &hold_mutex);
	(void)pthread_mutex_unlock(&hold_mutex);
}

void hold_forget(struct hold hold)
{
	struct held **at, *held;

	(void)pthread_mutex_lock(&hold_mutex);
	at = hold_find(hold);
	held = *at;
	if (held)
		*at = held->next;
	(void)pthread_mutex_unlock(&hold_mutex);
	free(held);
}
