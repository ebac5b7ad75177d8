/* SPDX-License-Identifier: Apache-2.0 */

/* Which devices fit each other. Every available one is tried as the first, with those that are nearest to it. */

#include <errno.h>
#include <stdlib.h>

#include "base/str.h"
#include "cluster/devices.h"

/* How far a device is from another, in steps; the first counts more than any of the second. */
enum { PREFERENCE_NUMA = 2, PREFERENCE_STORE = 1, PREFERENCE_DISTANCES = PREFERENCE_NUMA + PREFERENCE_STORE + 1 };

struct preference {
	const struct device **candidates; /* those that must be come first */
	size_t count, must, size;
};

static int preference_distance(const struct device *a, const struct device *b)
{
	bool same_store = a->store && b->store ? streq(a->store, b->store) : a->store == b->store;

	return (a->numa == b->numa ? 0 : PREFERENCE_NUMA) + (same_store ? 0 : PREFERENCE_STORE);
}

static void preference_add(struct preference *preference, const struct resource *resource, char *const *ids,
			   size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct device *device = resource_find(resource, ids[i]);
		bool known = !device || preference->count == resource->count;

		for (size_t j = 0; j < preference->count && !known; j++)
			known = preference->candidates[j] == device;
		if (!known)
			preference->candidates[preference->count++] = device;
	}
}

/* The nearest to @anchor. Return: how far they are from it altogether, and of its own group how many stay behind. */
static size_t preference_take(const struct preference *preference, const struct device *anchor, const char **ret)
{
	size_t taken = 0, cost = 0, left = 0;

	for (; taken < preference->must && taken < preference->size; taken++) {
		ret[taken] = preference->candidates[taken]->id;
		cost += (size_t)preference_distance(anchor, preference->candidates[taken]);
	}
	for (int distance = 0; distance < PREFERENCE_DISTANCES; distance++)
		for (size_t i = preference->must; i < preference->count; i++) {
			if (preference_distance(anchor, preference->candidates[i]) != distance)
				continue;
			if (taken < preference->size) {
				ret[taken++] = preference->candidates[i]->id;
				cost += (size_t)distance;
			} else if (distance == 0)
				left++;
		}
	return cost * (RESOURCE_DEVICES_MAX + 1) + left;
}

long preference_choose(const struct resource *resource, char *const *available, size_t available_count,
		       char *const *must, size_t must_count, size_t size, const char **ret)
{
	_cleanup_free_ const struct device **candidates = calloc(resource->count + 1, sizeof(*candidates));
	struct preference preference = {.candidates = candidates};
	size_t best = SIZE_MAX, anchors, chosen = 0;

	if (!candidates)
		return -ENOMEM;
	preference_add(&preference, resource, must, must_count);
	preference.must = preference.count;
	preference_add(&preference, resource, available, available_count);
	preference.size = size < preference.count ? size : preference.count;
	anchors = preference.must > 0 ? preference.must : preference.count;
	for (size_t i = 0; i < anchors; i++) {
		size_t cost = preference_take(&preference, candidates[i], ret);

		if (cost < best) {
			best = cost;
			chosen = i;
		}
	}
	if (anchors > 0)
		(void)preference_take(&preference, candidates[chosen], ret);
	return (long)preference.size;
}
