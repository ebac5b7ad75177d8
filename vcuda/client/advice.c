/* SPDX-License-Identifier: Apache-2.0 */

#include "vcuda/client/advice.h"

#include <stdlib.h>
#include <string.h>

/* Parts of which the same was said, by address. Of what lies between them, nothing was. */
struct advice_part {
	struct advice_part *next;
	uint64_t at, end;
	struct advice advice;
};

static struct lock advice_lock;
static struct advice_part *advice_parts;

/* Return: the place of the first part that ends behind @at. */
static struct advice_part **advice_find(uint64_t at)
{
	struct advice_part **place = &advice_parts;

	while (*place && (*place)->end <= at)
		place = &(*place)->next;
	return place;
}

static bool advice_insert(struct advice_part **place, uint64_t at, uint64_t end, const struct advice *advice)
{
	struct advice_part *part = malloc(sizeof(*part));

	if (!part)
		return false;
	*part = (struct advice_part){.next = *place, .at = at, .end = end, .advice = *advice};
	*place = part;
	return true;
}

/* A part that goes on beyond @at becomes two. */
static bool advice_cut(uint64_t at)
{
	struct advice_part **place = advice_find(at), *part = *place;

	if (!part || part->at >= at)
		return true;
	if (!advice_insert(&part->next, at, part->end, &part->advice))
		return false;
	part->end = at;
	return true;
}

/* Nothing lies between the parts from @at to @end. */
static bool advice_fill(uint64_t at, uint64_t end)
{
	static const struct advice nothing;

	for (struct advice_part **place = advice_find(at); at < end; place = &(*place)->next) {
		const uint64_t next = *place && (*place)->at < end ? (*place)->at : end;

		if (next > at && !advice_insert(place, at, next, &nothing))
			return false;
		at = (*place)->end;
	}
	return true;
}

static bool advice_is_same(const struct advice *a, const struct advice *b)
{
	return a->preferred.type == b->preferred.type && a->preferred.id == b->preferred.id &&
	       a->last.type == b->last.type && a->last.id == b->last.id && a->accessed == b->accessed &&
	       a->read_mostly == b->read_mostly;
}

/* Parts that touch and say the same become one. */
static void advice_join(void)
{
	for (struct advice_part *part = advice_parts; part; part = part->next)
		while (part->next && part->next->at == part->end &&
		       advice_is_same(&part->advice, &part->next->advice)) {
			struct advice_part *gone = part->next;

			part->end = gone->end;
			part->next = gone->next;
			free(gone);
		}
}

CUresult advice_set(uint64_t at, uint64_t end, void (*change)(struct advice *advice, int what, CUmemLocation location),
		    int what, CUmemLocation location)
{
	LOCK_HOLD(&advice_lock);
	if (!advice_cut(at) || !advice_cut(end) || !advice_fill(at, end))
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (struct advice_part *part = *advice_find(at); part && part->at < end; part = part->next)
		change(&part->advice, what, location);
	advice_join();
	return CUDA_SUCCESS;
}

void advice_look(uint64_t at, uint64_t end, void (*look)(const struct advice *advice, void *data), void *data)
{
	static const struct advice nothing;

	LOCK_HOLD(&advice_lock);
	for (const struct advice_part *part = *advice_find(at); at < end; part = part->next) {
		if (!part || part->at > at)
			look(&nothing, data);
		if (!part || part->at >= end)
			return;
		look(&part->advice, data);
		at = part->end;
	}
}

void advice_forget(uint64_t at, uint64_t end)
{
	struct advice_part **place;

	LOCK_HOLD(&advice_lock);
	/* Where there is no memory to cut one, more is forgotten. */
	(void)advice_cut(at);
	(void)advice_cut(end);
	place = advice_find(at);
	while (*place && (*place)->at < end) {
		struct advice_part *gone = *place;

		*place = gone->next;
		free(gone);
	}
}
