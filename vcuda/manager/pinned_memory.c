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

/* Return: a container that has more than @share, or of those that have ended; NULL: none that is not settled. */
static struct tenant *pinned_memory_find_settled(struct manager *manager, uint64_t share)
{
	for (struct tenant *tenant = manager->tenants; tenant; tenant = tenant->next)
		if (!tenant->settled && (tenant->ending || pinned_memory_had(manager, tenant) > share))
			return tenant;
	return NULL;
}

void pinned_memory_host_memory(struct manager *manager)
{
	uint64_t left = manager->host_memory, open = manager->tenant_count;
	struct tenant *settled;

	if (left == 0)
		return;
	for (struct tenant *tenant = manager->tenants; tenant; tenant = tenant->next)
		tenant->settled = false;
	while (open > 0 && (settled = pinned_memory_find_settled(manager, left / open))) {
		settled->settled = true;
		pinned_memory_set(manager, settled, pinned_memory_had(manager, settled));
		left -= settled->host_limit < left ? settled->host_limit : left;
		open--;
	}
	for (struct tenant *tenant = manager->tenants; tenant && open > 0; tenant = tenant->next)
		if (!tenant->settled)
			pinned_memory_set(manager, tenant, left / open);
}
