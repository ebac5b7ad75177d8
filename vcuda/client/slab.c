/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Small pieces of page-locked memory lie in slabs, which the server knows as one. A piece is given out once: what was
 * freed may be in use by the device still, and the server waits for that when the whole slab goes.
 */

#include <stdlib.h>

#include "vcuda/client/host.h"

enum { SLAB_ALIGNMENT = 512 };

struct slab {
	struct slab *next;
	uint64_t at, used;
	unsigned pieces;
	uint64_t context; /* the server's handle: with its end, the device does not reach the slab any more */
	enum address_map_kind kind;
};

static struct lock slab_lock;
static struct slab *slabs; /* the one that is filled stands first of its kind */

static struct slab **slab_find(uint64_t at)
{
	struct slab **place = &slabs;

	while (*place && at - (*place)->at >= SLAB_BYTES)
		place = &(*place)->next;
	return place;
}

static struct slab *slab_with_room(const struct range *range, uint64_t bytes)
{
	struct slab *slab = slabs;

	while (slab && (slab->kind != range->kind || slab->context != range->context->handle))
		slab = slab->next;
	return slab && bytes <= SLAB_BYTES - slab->used ? slab : NULL;
}

static CUresult slab_make(const struct range *range,
			  CUresult (*make)(const struct range *like, size_t bytes, uint64_t *ret), struct slab **ret)
{
	struct slab *slab = calloc(1, sizeof(*slab));
	CUresult r = slab ? make(range, SLAB_BYTES, &slab->at) : CUDA_ERROR_OUT_OF_MEMORY;

	if (r) {
		free(slab);
		return r;
	}
	slab->kind = range->kind;
	slab->context = range->context->handle;
	slab->next = slabs;
	slabs = slab;
	*ret = slab;
	return CUDA_SUCCESS;
}

CUresult slab_take(struct range *range, size_t bytes,
		   CUresult (*make)(const struct range *like, size_t bytes, uint64_t *ret))
{
	const uint64_t whole = (bytes + SLAB_ALIGNMENT - 1) & ~(uint64_t)(SLAB_ALIGNMENT - 1);
	struct slab *slab;
	CUresult r = CUDA_SUCCESS;

	LOCK_HOLD(&slab_lock);
	slab = slab_with_room(range, whole);
	if (!slab)
		r = slab_make(range, make, &slab);
	if (r)
		return r;
	range->at = slab->at + slab->used;
	slab->used += whole;
	slab->pieces++;
	return CUDA_SUCCESS;
}

bool slab_give(const struct range *range, uint64_t *ret)
{
	struct slab **place, *slab;

	LOCK_HOLD(&slab_lock);
	place = slab_find(range->at);
	slab = *place;
	*ret = 0;
	if (!slab || --slab->pieces > 0)
		return slab != NULL;
	*ret = slab->at;
	*place = slab->next;
	free(slab);
	return true;
}
