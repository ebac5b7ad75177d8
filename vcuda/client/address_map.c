/* SPDX-License-Identifier: Apache-2.0 */

#include "vcuda/client/address_map.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

struct address_map {
	struct range *ranges; /* by address */
	size_t count, room;
};

static struct lock address_map_lock;
static struct address_map address_map,
	address_map_mappings; /* all there is; what of it is mapped to what is reserved */
static uint64_t address_map_number;

/* Return: the place of the first range that begins behind @at. */
static size_t address_map_search(const struct address_map *map, uint64_t at)
{
	size_t low = 0, high = map->count;

	while (low < high) {
		const size_t middle = (low + high) / 2;

		if (map->ranges[middle].at > at)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

static void address_map_remove_at(struct address_map *map, size_t place)
{
	memmove(&map->ranges[place], &map->ranges[place + 1], (--map->count - place) * sizeof(*map->ranges));
}

static bool address_map_make_room(struct address_map *map)
{
	struct range *larger;

	if (map->count < map->room)
		return true;
	larger = realloc(map->ranges, (map->room * 2 + 64) * sizeof(*larger));
	if (!larger)
		return false;
	map->ranges = larger;
	map->room = map->room * 2 + 64;
	return true;
}

/* There is room. */
static struct range *address_map_insert(struct address_map *map, size_t place, const struct range *range)
{
	memmove(&map->ranges[place + 1], &map->ranges[place], (map->count++ - place) * sizeof(*range));
	map->ranges[place] = *range;
	return &map->ranges[place];
}

static bool address_map_is_same(const struct range *a, const struct range *b)
{
	return a->at == b->at && a->bytes == b->bytes && a->kind == b->kind && a->owner == b->owner;
}

static bool address_map_overlap(const struct range *a, const struct range *b)
{
	return a->at == b->at || (a->at < b->at ? b->at - a->at < a->bytes : a->at - b->at < b->bytes);
}

/* Removes what shares a byte with @range. Return: the place where that would be. */
static size_t address_map_make_place(struct address_map *map, const struct range *range)
{
	size_t place = address_map_search(map, range->at);

	if (place > 0 && address_map_overlap(&map->ranges[place - 1], range))
		address_map_remove_at(map, --place);
	while (place < map->count && address_map_overlap(&map->ranges[place], range))
		address_map_remove_at(map, place);
	return place;
}

CUresult address_map_add(const struct range *range)
{
	size_t place;

	LOCK_HOLD(&address_map_lock);
	place = address_map_search(&address_map, range->at);
	/* A variable that is asked for again. */
	if (place > 0 && range->owner && address_map_is_same(&address_map.ranges[place - 1], range))
		return CUDA_SUCCESS;
	/* The driver gives no address twice, so what was here is gone, like a variable with its library. */
	place = address_map_make_place(&address_map, range);
	if (!address_map_make_room(&address_map))
		return CUDA_ERROR_OUT_OF_MEMORY;
	address_map_insert(&address_map, place, range)->number = ++address_map_number;
	return CUDA_SUCCESS;
}

void address_map_put_back(const struct range *range)
{
	const struct range *ranges;
	size_t place;

	LOCK_HOLD(&address_map_lock);
	place = address_map_search(&address_map, range->at);
	ranges = address_map.ranges;
	if ((place > 0 && address_map_overlap(&ranges[place - 1], range)) ||
	    (place < address_map.count && address_map_overlap(&ranges[place], range)) ||
	    !address_map_make_room(&address_map))
		return;
	(void)address_map_insert(&address_map, place, range);
}

bool address_map_remove(uint64_t at, unsigned kinds, struct range *ret)
{
	const struct range *range;
	size_t place;

	LOCK_HOLD(&address_map_lock);
	place = address_map_search(&address_map, at);
	range = place > 0 ? &address_map.ranges[place - 1] : NULL;
	if (!range || range->at != at || !(kinds >> range->kind & 1))
		return false;
	if (ret)
		*ret = *range;
	address_map_remove_at(&address_map, place - 1);
	return true;
}

static struct range *address_map_look_in(const struct address_map *map, uint64_t at)
{
	const size_t place = address_map_search(map, at);
	struct range *range = place > 0 ? &map->ranges[place - 1] : NULL;

	return range && at - range->at < range->bytes ? range : NULL;
}

static struct range *address_map_look(uint64_t at)
{
	return address_map_look_in(&address_map, at);
}

static bool address_map_copy(const struct address_map *map, uint64_t at, struct range *ret)
{
	const struct range *range;

	LOCK_HOLD(&address_map_lock);
	range = address_map_look_in(map, at);
	if (range)
		*ret = *range;
	return range;
}

bool address_map_find(uint64_t at, struct range *ret)
{
	return address_map_copy(&address_map, at, ret);
}

void address_map_add_mapping(uint64_t at, uint64_t bytes)
{
	const struct range range = {.at = at, .bytes = bytes, .kind = ADDRESS_MAP_MAPPED};
	size_t place;

	LOCK_HOLD(&address_map_lock);
	place = address_map_make_place(&address_map_mappings, &range);
	if (address_map_make_room(&address_map_mappings))
		(void)address_map_insert(&address_map_mappings, place, &range);
}

void address_map_remove_mappings(uint64_t at, uint64_t bytes)
{
	LOCK_HOLD(&address_map_lock);
	(void)address_map_make_place(&address_map_mappings, &(struct range){.at = at, .bytes = bytes});
}

bool address_map_find_mapping(uint64_t at, struct range *ret)
{
	return address_map_copy(&address_map_mappings, at, ret);
}

bool address_map_find_in(uint64_t at, uint64_t bytes, struct range *ret)
{
	const struct range wanted = {.at = at, .bytes = bytes};
	size_t place;

	LOCK_HOLD(&address_map_lock);
	place = address_map_search(&address_map, at);
	if (place > 0 && address_map_overlap(&address_map.ranges[place - 1], &wanted))
		place--;
	else if (place == address_map.count || !address_map_overlap(&address_map.ranges[place], &wanted))
		return false;
	*ret = address_map.ranges[place];
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

/* Memory of the host is the process's, and that of pools is the device's, of no context. */
void address_map_forget_context(const struct context *context)
{
	LOCK_HOLD(&address_map_lock);
	for (size_t i = address_map.count; i > 0; i--) {
		const struct range *range = &address_map.ranges[i - 1];

		if (range->context == context && !address_map_is_host(range) && range->kind != ADDRESS_MAP_MANAGED)
			address_map_remove_at(&address_map, i - 1);
	}
}

bool address_map_remove_with_context(const struct context *context, struct range *ret)
{
	LOCK_HOLD(&address_map_lock);
	for (size_t i = address_map.count; i > 0; i--) {
		const struct range *range = &address_map.ranges[i - 1];

		if (range->context != context || (range->kind != ADDRESS_MAP_MANAGED && !range->freed))
			continue;
		*ret = *range;
		address_map_remove_at(&address_map, i - 1);
		return true;
	}
	return false;
}

void address_map_forget_owner(uint64_t owner)
{
	LOCK_HOLD(&address_map_lock);
	for (size_t i = address_map.count; i > 0; i--)
		if (address_map.ranges[i - 1].owner == owner)
			address_map_remove_at(&address_map, i - 1);
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
