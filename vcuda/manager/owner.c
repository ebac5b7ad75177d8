/* SPDX-License-Identifier: Apache-2.0 */

#include "vcuda/manager/manager.h"

#include <errno.h>
#include <string.h>

#include "base/str.h"

enum { LEAST_MEMORY = 1 << 20 };

/* One that has ended has its memory until its servers have ended, too. */
static bool owner_has_memory(const struct tenant *tenant)
{
	return !tenant->ending || tenant->clients > 0;
}

static bool owner_is_same(const struct tenant *tenant, const struct tenant *other)
{
	return tenant != other && tenant->owner.uid == other->owner.uid;
}

/* ---- memory of GPUs ---- */

/*
 * An amount has bytes, or a percentage, or both, of which the smaller counts. Where the user's has one, each
 * container's gets it, too, and is counted by it. What has fewer bytes than its percentage comes to counts as these
 * are of its GPU. Containers of different GPUs have less than their percentages add up to.
 */

/* Return: bytes of the least of a container's GPUs; 0: not known of all. */
static uint64_t owner_measure_gpu(const struct manager *manager, const struct tenant *tenant)
{
	uint64_t least = UINT64_MAX;

	for (size_t i = 0; i < tenant->gpu_count; i++) {
		/* Where it is now: that one is watched, and says how much it has. */
		const struct gpu *gpu = manager_find_gpu(tenant, tenant->places, i);
		uint64_t bytes = 0;

		for (size_t k = 0; k < manager->memory_count; k++)
			if (memcmp(manager->memories[k].uuid, gpu->bytes, sizeof(gpu->bytes)) == 0)
				bytes = manager->memories[k].bytes;
		least = bytes < least ? bytes : least;
	}
	return tenant->gpu_count > 0 ? least : 0;
}

static unsigned owner_count_percent(const struct manager *manager, const struct tenant *tenant, bool *ret_unknown)
{
	const unsigned percent = STR_SHARE_PERCENT(tenant->limits.memory);
	const uint64_t bytes = STR_SHARE_BYTES(tenant->limits.memory), whole = owner_measure_gpu(manager, tenant);
	uint64_t part;

	if (!bytes || !percent)
		return percent;
	*ret_unknown |= !whole;
	/* Rounded up, so that what is left is no more than there is. */
	part = whole ? (bytes * 100 + whole - 1) / whole : percent;
	return part < percent ? (unsigned)part : percent;
}

static uint64_t owner_take(uint64_t wanted, uint64_t limit, uint64_t taken, uint64_t least)
{
	const uint64_t left = taken < limit ? limit - taken : 0;

	if (left < least)
		return 0;
	return wanted && wanted < left ? wanted : left;
}

/* Return: NULL; why it gets none. @ret_unknown: that may be otherwise soon */
static const char *owner_take_memory(const struct manager *manager, struct tenant *tenant, bool *ret_unknown)
{
	const uint64_t limit_bytes = STR_SHARE_BYTES(tenant->owner.limits.memory),
		       limit_percent = STR_SHARE_PERCENT(tenant->owner.limits.memory);
	uint64_t bytes = STR_SHARE_BYTES(tenant->limits.memory), percent = STR_SHARE_PERCENT(tenant->limits.memory),
		 taken_bytes = 0, taken_percent = 0;

	for (const struct tenant *other = manager->tenants; other; other = other->next)
		if (owner_is_same(tenant, other) && owner_has_memory(other)) {
			taken_bytes += STR_SHARE_BYTES(other->limits.memory);
			taken_percent += owner_count_percent(manager, other, ret_unknown);
		}
	if (limit_bytes)
		bytes = owner_take(bytes, limit_bytes, taken_bytes, LEAST_MEMORY);
	if (limit_percent)
		percent = owner_take(percent, limit_percent, taken_percent, 1);
	tenant->limits.memory = bytes | STR_SHARE(percent);
	if ((!limit_bytes || bytes) && (!limit_percent || percent))
		return NULL;
	/* What is not known are percentages, which do not matter where an amount in bytes is used up. */
	*ret_unknown &= limit_percent && !percent;
	return "this user's other containers have all the memory of GPUs that \"memory\" allows; give each less by "
	       "CTR_GPU_MEMORY";
}

/* ---- containers ---- */

/* Whatever is left of one that has ended takes a place of the manager's. */
static bool owner_may_have_more(const struct manager *manager, const struct tenant *tenant, size_t *ret_all)
{
	size_t own = 0;

	*ret_all = 0;
	for (const struct tenant *other = manager->tenants; other; other = other->next)
		if (other->owner.uid) {
			++*ret_all;
			own += owner_is_same(tenant, other);
		}
	return own < tenant->owner.containers;
}

/* What one that has ended still has is free soon. */
static int owner_refusal(const struct manager *manager, const struct tenant *tenant)
{
	for (const struct tenant *other = manager->tenants; other; other = other->next)
		if (owner_is_same(tenant, other) && other->ending)
			return -EAGAIN;
	return -EDQUOT;
}

int owner_admit(struct manager *manager, struct tenant *tenant, const char **ret_why)
{
	bool unknown = false;
	const char *why;
	size_t all;

	if (!tenant->owner.uid)
		return 0;
	if (!owner_may_have_more(manager, tenant, &all)) {
		*ret_why = "as many containers of this user have GPUs by vCUDA as \"containers\" allows";
		return owner_refusal(manager, tenant);
	}
	if (all >= MANAGER_USERS_MAX)
		return -ENOSPC;
	why = owner_take_memory(manager, tenant, &unknown);
	if (why) {
		*ret_why = why;
		return unknown ? -EAGAIN : owner_refusal(manager, tenant);
	}
	for (struct tenant *other = manager->tenants; other; other = other->next)
		if (owner_is_same(tenant, other))
			other->owner = tenant->owner;
	return 0;
}

bool owner_has_place(const struct manager *manager, const struct tenant *tenant)
{
	unsigned own = 0, all = 0;

	if (!tenant->owner.uid)
		return true;
	for (const struct tenant *other = manager->tenants; other; other = other->next)
		if (other->owner.uid) {
			all += other->clients;
			own += other->owner.uid == tenant->owner.uid ? other->clients : 0;
		}
	return own < tenant->owner.limits.max_clients && all < MANAGER_USERS_MAX;
}

/* ---- GPUs' time ---- */

uint32_t owner_share(const struct manager *manager, const struct tenant *tenant)
{
	uint64_t sum = tenant->wanted_share, part;

	if (!tenant->owner.uid)
		return tenant->wanted_share;
	for (const struct tenant *other = manager->tenants; other; other = other->next)
		if (owner_is_same(tenant, other) && !other->ending)
			sum += other->wanted_share;
	if (sum <= tenant->owner.limits.share)
		return tenant->wanted_share;
	part = tenant->wanted_share * (uint64_t)tenant->owner.limits.share / sum;
	return part > 0 ? (uint32_t)part : 1;
}
