/* SPDX-License-Identifier: Apache-2.0 */

/* Which addresses belong to what: device memory, locked memory of the host, pools; mapped handles are in vmm.c. */

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "sim.h"

static struct range *ranges;
static unsigned long long next_id = 1;

unsigned long long memory_next_id(void)
{
	return next_id++;
}

struct range *address_map_find(uintptr_t address)
{
	for (struct range *range = ranges; range; range = range->next)
		if (address >= range->start && address - range->start < range->size)
			return range;
	return NULL;
}

struct range *address_map_find_in(uintptr_t address, size_t bytes)
{
	struct range *found = address_map_find(address);

	for (struct range *range = ranges; range && !found; range = range->next)
		if (range->start >= address && range->start - address < bytes)
			found = range;
	return found;
}

struct range *address_map_add(enum address_map_kind kind, void *start, size_t size, CUcontext context)
{
	struct range *range = calloc(1, sizeof(*range));

	if (!range)
		abort();
	range->kind = kind;
	range->start = (uintptr_t)start;
	range->size = size;
	range->context = context;
	range->device = context ? context->device : NULL;
	range->id = memory_next_id();
	range->next = ranges;
	ranges = range;
	return range;
}

void address_map_remove(struct range *range)
{
	for (struct range **place = &ranges; *place; place = &(*place)->next)
		if (*place == range) {
			*place = range->next;
			free(range->advice);
			free(range);
			return;
		}
}

struct range *range_shared(uint64_t offset)
{
	for (struct range *range = ranges; range; range = range->next)
		if (range->kind == RANGE_TAKEN && range->shared == offset)
			return range;
	return NULL;
}

struct range *range_next(struct range *after, CUcontext context)
{
	for (struct range *range = after ? after->next : ranges; range; range = range->next)
		if (range->context == context)
			return range;
	return NULL;
}

bool range_is_host(const struct range *range)
{
	return range->kind == ADDRESS_MAP_HOST || range->kind == RANGE_REGISTERED;
}

static bool range_covers(const struct range *range, uintptr_t address, size_t size)
{
	return range->kind != ADDRESS_MAP_RESERVED && !range->freed && size <= range->size - (address - range->start);
}

bool range_holds(uintptr_t address, size_t size)
{
	const struct range *range = address_map_find(address);

	if (range && range->kind != ADDRESS_MAP_RESERVED)
		return range_covers(range, address, size);
	return vmm_holds(address, size, NULL);
}

bool range_reaches(CUcontext context, uintptr_t address, size_t size, bool write)
{
	const struct range *range = address_map_find(address);

	if (!range || range->kind == ADDRESS_MAP_RESERVED)
		return vmm_reaches(address, size, write);
	if (!range_covers(range, address, size))
		return false;
	return range_is_host(range) || range->kind == RANGE_MANAGED || range->device == context->device ||
	       context->peers[range->device->ordinal];
}

bool range_is_registered(uintptr_t address)
{
	const struct range *range = address_map_find(address);

	return range && range->kind == RANGE_REGISTERED;
}

void range_must_stay(uintptr_t address)
{
	bool registered;

	if (!object_strict())
		return;
	(void)pthread_mutex_lock(&sim_lock);
	registered = range_is_registered(address);
	(void)pthread_mutex_unlock(&sim_lock);
	if (registered)
		return;
	(void)dprintf(STDERR_FILENO, "sim: used after it was registered: memory %#lx\n", (unsigned long)address);
	abort();
}
