/* SPDX-License-Identifier: Apache-2.0 */

#include "vcuda/client/address_map.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

static struct lock address_map_lock;
static struct range *ranges; /* by address */
static size_t range_count, address_map_room;
static uint64_t address_map_number;

/* Return: the place of the first range that begins behind @at. */
static size_t address_map_search(uint64_t at)
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

static void address_map_remove_at(size_t place)
{
	memmove(&ranges[place], &ranges[place + 1], (--range_count - place) * sizeof(*ranges));
}

static bool address_map_make_room(void)
{
	struct range *larger;

	if (range_count < address_map_room)
		return true;
	larger = realloc(ranges, (address_map_room * 2 + 64) * sizeof(*ranges));
	if (!larger)
		return false;
	ranges = larger;
	address_map_room = address_map_room * 2 + 64;
	return true;
}

static bool address_map_is_same(const struct range *a, const struct range *b)
{
	return a->at == b->at && a->bytes == b->bytes && a->kind == b->kind && a->owner == b->owner;
}

static bool address_map_overlap(const struct range *a, const struct range *b)
{
	return a->at == b->at || (a->at < b->at ? b->at - a->at < a->bytes : a->at - b->at < b->bytes);
}

CUresult address_map_add(const struct range *range)
{
	size_t place;

	LOCK_HOLD(&address_map_lock);
	place = address_map_search(range->at);
	/* A variable that is asked for again. */
	if (place > 0 && range->owner && address_map_is_same(&ranges[place - 1], range))
		return CUDA_SUCCESS;
	/* The driver gives no address twice, so what was here is gone, like a variable with its library. */
	if (place > 0 && address_map_overlap(&ranges[place - 1], range))
		address_map_remove_at(--place);
	while (place < range_count && address_map_overlap(&ranges[place], range))
		address_map_remove_at(place);
	if (!address_map_make_room())
		return CUDA_ERROR_OUT_OF_MEMORY;
	memmove(&ranges[place + 1], &ranges[place], (range_count++ - place) * sizeof(*ranges));
	ranges[place] = *range;
	ranges[place].number = ++address_map_number;
	return CUDA_SUCCESS;
}

void address_map_put_back(const struct range *range)
{
	size_t place;

	LOCK_HOLD(&address_map_lock);
	place = address_map_search(range->at);
	if ((place > 0 && address_map_overlap(&ranges[place - 1], range)) ||
	    (place < range_count && address_map_overlap(&ranges[place], range)) || !address_map_make_room())
		return;
	memmove(&ranges[place + 1], &ranges[place], (range_count++ - place) * sizeof(*ranges));
	ranges[place] = *range;
}

bool address_map_remove(uint64_t at, unsigned kinds, struct range *ret)
{
	size_t place;

	LOCK_HOLD(&address_map_lock);
	place = address_map_search(at);
	if (place == 0 || ranges[place - 1].at != at || !(kinds >> ranges[place - 1].kind & 1))
		return false;
	if (ret)
		*ret = ranges[place - 1];
	address_map_remove_at(place - 1);
	return true;
}

static struct range *address_map_look(uint64_t at)
{
	const size_t place = address_map_search(at);

	if (place == 0 || at - ranges[place - 1].at >= ranges[place - 1].bytes)
		return NULL;
	return &ranges[place - 1];
}

bool address_map_find(uint64_t at, struct range *ret)
{
	const struct range *range;

	LOCK_HOLD(&address_map_lock);
	range = address_map_look(at);
	if (range)
		*ret = *range;
	return range;
}

bool address_map_find_in(uint64_t at, uint64_t bytes, struct range *ret)
{
	const struct range wanted = {.at = at, .bytes = bytes};
	size_t place;

	LOCK_HOLD(&address_map_lock);
	place = address_map_search(at);
	if (place > 0 && address_map_overlap(&ranges[place - 1], &wanted))
		place--;
	else if (place == range_count || !address_map_overlap(&ranges[place], &wanted))
		return false;
	*ret = ranges[place];
	return true;
}

void address_map_set_waits(uint64_t at, bool waits)
{
	struct range *range;

	LOCK_HOLD(&address_map_lock);
	range = address_map_look(at);
	if (range)
		range->waits = waits;
}

bool address_map_is_known(uint64_t at, uint64_t bytes, uint64_t alignment)
{
	const struct range *range;

	if (bytes == 0 || at % alignment != 0)
		return false;
	LOCK_HOLD(&address_map_lock);
	range = address_map_look(at);
	return range && range->kind != ADDRESS_MAP_RESERVED && range->kind != ADDRESS_MAP_REGISTERED &&
	       bytes <= range->bytes - (at - range->at);
}

bool address_map_is_locked(const void *at, uint64_t bytes)
{
	const struct range *range;

	if (client.arena == 0 || (uint64_t)at - client.arena >= WIRE_ARENA_BYTES)
		return false;
	LOCK_HOLD(&address_map_lock);
	range = address_map_look((uint64_t)at);
	return range && (range->kind == ADDRESS_MAP_HOST || range->kind == ADDRESS_MAP_MANAGED) &&
	       bytes <= range->bytes - ((uint64_t)at - range->at);
}

/* Memory of the host is the process's, and that of pools is the device's. */
void address_map_forget_context(const struct context *context)
{
	LOCK_HOLD(&address_map_lock);
	for (size_t i = range_count; i > 0; i--)
		if (ranges[i - 1].context == context && !address_map_is_host(&ranges[i - 1]) &&
		    ranges[i - 1].kind != ADDRESS_MAP_ASYNC && ranges[i - 1].kind != ADDRESS_MAP_GRAPH &&
		    ranges[i - 1].kind != ADDRESS_MAP_MANAGED)
			address_map_remove_at(i - 1);
}

bool address_map_remove_managed(const struct context *context, struct range *ret)
{
	LOCK_HOLD(&address_map_lock);
	for (size_t i = range_count; i > 0; i--)
		if (ranges[i - 1].context == context && ranges[i - 1].kind == ADDRESS_MAP_MANAGED) {
			*ret = ranges[i - 1];
			address_map_remove_at(i - 1);
			return true;
		}
	return false;
}

void address_map_forget_owner(uint64_t owner)
{
	LOCK_HOLD(&address_map_lock);
	for (size_t i = range_count; i > 0; i--)
		if (ranges[i - 1].owner == owner)
			address_map_remove_at(i - 1);
}

bool address_map_is_device(CUdeviceptr pointer)
{
	struct range range;

	return address_map_find(pointer, &range) && !address_map_is_host(&range);
}

bool address_map_has_host(uint64_t at, size_t bytes)
{
	char ends[2];
	const struct iovec to = {ends, sizeof(ends)}, from[] = {{(void *)at, 1}, {(void *)(at + bytes - 1), 1}};
	long r;

	if (at == 0 || address_map_is_locked((const void *)at, bytes))
		return at != 0;
	r = syscall(SYS_process_vm_readv, syscall(SYS_getpid), &to, 1L, from, 2L, 0L);
	return r == (long)sizeof(ends) || (r < 0 && errno != EFAULT);
}

bool address_map_is_device_alone(uint64_t at, size_t bytes)
{
	struct range range;

	return address_map_find(at, &range) && !address_map_is_host(&range) && !address_map_is_managed(&range) &&
	       !address_map_has_host(at, bytes);
}
