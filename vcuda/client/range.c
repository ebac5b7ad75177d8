/* SPDX-License-Identifier: Apache-2.0 */

#include "vcuda/client/range.h"

#include <stdlib.h>
#include <string.h>

static struct lock range_lock;
static struct range *ranges; /* by address */
static size_t range_count, range_room;
static uint64_t range_number;

/* Return: the place of the first range that begins behind @at. */
static size_t range_search(uint64_t at)
{
	size_t low = 0, high = range_count;

	while (low < high) {
		const size_t middle = (low + high) / 2;

		if (ranges[middle].at > at)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

static void range_remove_at(size_t place)
{
	memmove(&ranges[place], &ranges[place + 1], (--range_count - place) * sizeof(*ranges));
}

static bool range_make_room(void)
{
	struct range *larger;

	if (range_count < range_room)
		return true;
	larger = realloc(ranges, (range_room * 2 + 64) * sizeof(*ranges));
	if (!larger)
		return false;
	ranges = larger;
	range_room = range_room * 2 + 64;
	return true;
}

static bool range_is_same(const struct range *a, const struct range *b)
{
	return a->at == b->at && a->bytes == b->bytes && a->kind == b->kind && a->owner == b->owner;
}

static bool range_overlap(const struct range *a, const struct range *b)
{
	return a->at == b->at || (a->at < b->at ? b->at - a->at < a->bytes : a->at - b->at < b->bytes);
}

CUresult range_add(const struct range *range)
{
	size_t place;

	LOCK_HOLD(&range_lock);
	place = range_search(range->at);
	/* A variable that is asked for again. */
	if (place > 0 && range->kind == RANGE_GLOBAL && range_is_same(&ranges[place - 1], range))
		return CUDA_SUCCESS;
	/* The driver gives no address twice, so what was here is gone, like a variable with its library. */
	if (place > 0 && range_overlap(&ranges[place - 1], range))
		range_remove_at(--place);
	while (place < range_count && range_overlap(&ranges[place], range))
		range_remove_at(place);
	if (!range_make_room())
		return CUDA_ERROR_OUT_OF_MEMORY;
	memmove(&ranges[place + 1], &ranges[place], (range_count++ - place) * sizeof(*ranges));
	ranges[place] = *range;
	ranges[place].number = ++range_number;
	return CUDA_SUCCESS;
}

bool range_remove(uint64_t at, unsigned kinds, struct range *ret)
{
	size_t place;

	LOCK_HOLD(&range_lock);
	place = range_search(at);
	if (place == 0 || ranges[place - 1].at != at || !(kinds >> ranges[place - 1].kind & 1))
		return false;
	if (ret)
		*ret = ranges[place - 1];
	range_remove_at(place - 1);
	return true;
}

static struct range *range_look(uint64_t at)
{
	const size_t place = range_search(at);

	if (place == 0 || at - ranges[place - 1].at >= ranges[place - 1].bytes)
		return NULL;
	return &ranges[place - 1];
}

bool range_find(uint64_t at, struct range *ret)
{
	const struct range *range;

	LOCK_HOLD(&range_lock);
	range = range_look(at);
	if (range)
		*ret = *range;
	return range;
}

void range_set_waits(uint64_t at, bool waits)
{
	struct range *range;

	LOCK_HOLD(&range_lock);
	range = range_look(at);
	if (range)
		range->waits = waits;
}

bool range_is_known(uint64_t at, uint64_t bytes, uint64_t alignment)
{
	const struct range *range;

	if (bytes == 0 || at % alignment != 0)
		return false;
	LOCK_HOLD(&range_lock);
	range = range_look(at);
	return range && range->kind != RANGE_RESERVED && bytes <= range->bytes - (at - range->at);
}

bool range_is_locked(const void *at, uint64_t bytes)
{
	const struct range *range;

	if (client.arena == 0 || (uint64_t)at - client.arena >= WIRE_ARENA_BYTES)
		return false;
	LOCK_HOLD(&range_lock);
	range = range_look((uint64_t)at);
	return range && range->kind == RANGE_HOST && bytes <= range->bytes - ((uint64_t)at - range->at);
}

/* Memory of the host is the process's, and that of pools is the device's. */
void range_forget_context(const struct context *context)
{
	LOCK_HOLD(&range_lock);
	for (size_t i = range_count; i > 0; i--)
		if (ranges[i - 1].context == context && ranges[i - 1].kind != RANGE_HOST &&
		    ranges[i - 1].kind != RANGE_ASYNC)
			range_remove_at(i - 1);
}

void range_forget_owner(uint64_t owner)
{
	LOCK_HOLD(&range_lock);
	for (size_t i = range_count; i > 0; i--)
		if (ranges[i - 1].owner == owner)
			range_remove_at(i - 1);
}
