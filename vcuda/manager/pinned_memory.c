/* SPDX-License-Identifier: Apache-2.0 */

#include "vcuda/manager/manager.h"

#include <stddef.h>
#include <sys/sysinfo.h>

uint64_t pinned_memory_measure_host(void)
{
	struct sysinfo host;

	return sysinfo(&host) < 0 ? 0 : (uint64_t)host.totalram * host.mem_unit / 2;
}

/*
 * Page-locked memory is a part of what the container's servers may have of the host's: they are told that there is no
 * more before the kernel ends them.
 */
uint64_t pinned_memory_measure(const struct tenant *tenant)
{
	const uint64_t half = tenant->limits.host_memory / 2, quarter = pinned_memory_measure_host() / 2;

	return half < quarter ? half : quarter;
}

/*
 * Servers write there, so it is not more than the container was allowed, nor than half of all: a server that was not
 * taken over keeps to that by itself (start.host_memory).
 */
static uint64_t pinned_memory_had(const struct manager *manager, const struct tenant *tenant)
{
	const uint64_t half = manager->host_memory / 2, most = tenant->host_limit < half ? tenant->host_limit : half;
	uint64_t sum = remnant_measure(manager, tenant);

	for (size_t i = 0; i < START_QUOTA_SLOTS; i++)
		if (__builtin_add_overflow(sum, tenant->quota->locked[i], &sum))
			return most;
	return sum < most ? sum : most;
}

/* Servers do not count what others of their container have left. */
static void pinned_memory_set(const struct manager *manager, struct tenant *tenant, uint64_t limit)
{
	const uint64_t left = remnant_measure(manager, tenant), own = pinned_memory_measure(tenant),
		       most = left && own < limit ? own : limit;

	tenant->host_limit = limit;
	/* 0 would be no limit of ours. */
	tenant->orders->locked_limit = most > left ? most - left : 1;
}

/* A container that has more than its share, or that ends, keeps what it has and gets no more. */
static bool pinned_memory_has_more(const struct manager *manager, const struct tenant *tenant, uint64_t share)
{
	return tenant->ending || pinned_memory_had(manager, tenant) > share;
}

/* Who may not have all of its share leaves the rest to the others: many small ones take nothing from a large one. */
static bool pinned_memory_needs_less(const struct manager *manager, const struct tenant *tenant, uint64_t share)
{
	(void)manager;
	return pinned_memory_measure(tenant) < share;
}

typedef bool (*pinned_memory_question)(const struct manager *manager, const struct tenant *tenant, uint64_t share);

static struct tenant *pinned_memory_find(const struct manager *manager, pinned_memory_question is, uint64_t share)
{
	for (struct tenant *tenant = manager->tenants; tenant; tenant = tenant->next)
		if (!tenant->settled && is(manager, tenant, share))
			return tenant;
	return NULL;
}

static void pinned_memory_settle(const struct manager *manager, struct tenant *tenant, uint64_t limit, uint64_t *left)
{
	tenant->settled = true;
	pinned_memory_set(manager, tenant, limit);
	*left -= limit < *left ? limit : *left;
}

void pinned_memory_host_memory(struct manager *manager)
{
	uint64_t left = manager->host_memory, open = manager->tenant_count;
	struct tenant *tenant;

	if (left == 0)
		return;
	for (tenant = manager->tenants; tenant; tenant = tenant->next)
		tenant->settled = false;
	for (; open > 0 && (tenant = pinned_memory_find(manager, pinned_memory_has_more, left / open)); open--)
		pinned_memory_settle(manager, tenant, pinned_memory_had(manager, tenant), &left);
	for (; open > 0 && (tenant = pinned_memory_find(manager, pinned_memory_needs_less, left / open)); open--)
		pinned_memory_settle(manager, tenant, pinned_memory_measure(tenant), &left);
	for (tenant = manager->tenants; tenant && open > 0; tenant = tenant->next)
		if (!tenant->settled)
			pinned_memory_set(manager, tenant, left / open);
}
