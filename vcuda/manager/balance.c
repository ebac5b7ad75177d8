/* SPDX-License-Identifier: Apache-2.0 */

#include "vcuda/manager/balance.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "model/device_name.h"
#include "vcuda/manager/manager.h"

enum {
	BALANCE_LOOKS = 4, /* within the time for which the load is to be unlike, but not */
	BALANCE_LOOK_LEAST_MS = 500,
	BALANCE_LOOK_MOST_MS = 4000, /* the decider goes on measuring for longer */
	BALANCE_NS_EACH_MS = 1000 * 1000,
	SECOND_MS = 1000
};

/* ---- what is decided ---- */

static unsigned balance_most(unsigned one, unsigned other)
{
	return one > other ? one : other;
}

struct balance_gain balance_measure(const unsigned *loads, const struct balance_part *part)
{
	const unsigned before = loads[part->on];
	struct balance_gain best = {0};

	for (unsigned to = 0; to < BALANCE_GPUS; to++) {
		unsigned after;

		if (to == part->on || !(part->reach >> to & 1) || part->load > before)
			continue;
		after = balance_most(before - part->load, loads[to] + part->load);
		if (before >= after + BALANCE_LEAST && before - after > best.gain)
			best = (struct balance_gain){to, before - after};
	}
	return best;
}

bool balance_is_better(const struct balance_part *one, unsigned gain, const struct balance_part *other,
		       unsigned other_gain)
{
	return gain != other_gain ? gain > other_gain : one->memory < other->memory;
}

/* ---- what there is ---- */

/* A table of all GPUs of containers. */
struct balance {
	const struct gpu *gpus[BALANCE_GPUS];
	unsigned loads[BALANCE_GPUS];
	unsigned count;
	struct device_names exclusive; /* no part goes there */
};

/* Return: its number; BALANCE_GPUS if there are too many. */
static unsigned balance_find(struct balance *balance, const struct gpu *gpu)
{
	unsigned i = 0;

	while (i < balance->count && memcmp(balance->gpus[i]->bytes, gpu->bytes, sizeof(gpu->bytes)) != 0)
		i++;
	if (i == balance->count && i < BALANCE_GPUS) {
		balance->gpus[i] = gpu;
		balance->count++;
	}
	return i;
}

/* What a container has of a GPU of its, in thousandths, since it was looked at last. Servers write what is added up. */
static unsigned balance_count(const struct tenant *tenant, size_t place, int64_t now)
{
	const int64_t past = now - tenant->balance.looked_at;
	const uint64_t sum = tenant_sum_time(tenant, place), seen = tenant->balance.seen[place];
	uint64_t load;

	if (!tenant->balance.looked_at || past <= 0 || sum < seen)
		return 0;
	load = (sum - seen) / BALANCE_NS_EACH_MS * BALANCE_ALL / (uint64_t)past;
	return load < BALANCE_ALL ? (unsigned)load : BALANCE_ALL;
}

static void balance_note(struct tenant *tenant, int64_t now)
{
	for (size_t i = 0; i < tenant->reach; i++)
		tenant->balance.seen[i] = tenant_sum_time(tenant, i);
	tenant->balance.looked_at = now;
}

static void balance_add_loads(const struct manager *manager, struct balance *balance, int64_t now)
{
	for (const struct tenant *tenant = manager->tenants; tenant; tenant = tenant->next)
		for (size_t i = 0; i < tenant->reach; i++) {
			const unsigned gpu = balance_find(balance, &tenant->gpus[i]);

			if (gpu < BALANCE_GPUS)
				balance->loads[gpu] += balance_count(tenant, i, now);
		}
}

/* Where what a container has under a number may go. */
static uint64_t balance_list_targets(const struct manager *manager, const struct tenant *tenant, size_t number,
				     struct balance *balance)
{
	uint64_t reach = 0;

	for (size_t i = 0; i < tenant->reach; i++) {
		const unsigned gpu = balance_find(balance, &tenant->gpus[i]);

		if (gpu < BALANCE_GPUS && drain_may_take(manager, &balance->exclusive, tenant, number, i))
			reach |= (uint64_t)1 << gpu;
	}
	return reach;
}

static bool balance_is_of(const struct tenant *tenant)
{
	return tenant->limits.balance && !tenant->ending && tenant->clients > 0 && tenant->reach > 1;
}

/* Whether another container's programs may have work where this one's have. */
static bool balance_has_neighbour(const struct manager *manager, const struct tenant *tenant)
{
	for (const struct tenant *other = manager->tenants; other; other = other->next)
		for (size_t i = 0; i < tenant->gpu_count && other != tenant && !other->ending && other->clients > 0;
		     i++)
			if (gpu_assign_uses(other, other->places, manager_find_gpu(tenant, tenant->places, i)))
				return true;
	return false;
}

/* Nothing is measured, and nothing looked at, while none could be moved. */
static bool balance_is_thinkable(const struct manager *manager)
{
	for (const struct tenant *tenant = manager->tenants; tenant && !manager->asleep; tenant = tenant->next)
		if (balance_is_of(tenant) && balance_has_neighbour(manager, tenant))
			return true;
	return false;
}

/* ---- one after the other ---- */

/* What is to be moved first. */
struct balance_choice {
	struct tenant *tenant; /* NULL: nothing */
	struct balance_part part;
	struct balance_gain gain;
};

/* What a container would have moved, if it has something. */
static struct balance_choice balance_choose_part(const struct manager *manager, struct tenant *tenant,
						 struct balance *balance, int64_t now)
{
	struct balance_choice best = {0};

	for (size_t i = 0; i < tenant->gpu_count; i++) {
		const size_t place = start_place(tenant->places, (unsigned)i);
		const struct balance_part part = {
			.on = balance_find(balance, manager_find_gpu(tenant, tenant->places, i)),
			.load = balance_count(tenant, place, now),
			.reach = balance_list_targets(manager, tenant, i, balance),
			.memory = tenant_sum_memory(tenant),
		};
		const struct balance_gain gain =
			part.on < BALANCE_GPUS ? balance_measure(balance->loads, &part) : (struct balance_gain){0};

		if (gain.gain > best.gain.gain)
			best = (struct balance_choice){tenant, part, gain};
	}
	return best;
}

unsigned balance_stays(const struct tenant *tenant, int64_t now)
{
	const int64_t times = (int64_t)tenant->limits.balance * SECOND_MS * BALANCE_STAY_TIMES;
	const int64_t stay = times > BALANCE_STAY_LEAST_MS ? times : BALANCE_STAY_LEAST_MS;
	const int64_t left = tenant->moved_at ? tenant->moved_at + stay - now : 0;

	return left > 0 ? (unsigned)((left + SECOND_MS - 1) / SECOND_MS) : 0;
}

/* For so long without a break. */
static bool balance_is_due(const struct tenant *tenant, int64_t now)
{
	return balance_stays(tenant, now) == 0 &&
	       now - tenant->balance.unlike_since >= (int64_t)tenant->limits.balance * SECOND_MS;
}

static struct balance_choice balance_choose(const struct manager *manager, struct balance *balance, int64_t now)
{
	struct balance_choice best = {0};

	for (struct tenant *tenant = manager->tenants; tenant; tenant = tenant->next) {
		struct balance_choice choice = {0};

		if (balance_is_of(tenant) && tenant->suspension.state == SUSPENSION_NONE)
			choice = balance_choose_part(manager, tenant, balance, now);
		if (!choice.tenant)
			tenant->balance.unlike_since = 0;
		else if (!tenant->balance.unlike_since)
			tenant->balance.unlike_since = now;
		if (choice.tenant && balance_is_due(tenant, now) &&
		    (!best.tenant || balance_is_better(&choice.part, choice.gain.gain, &best.part, best.gain.gain)))
			best = choice;
	}
	return best;
}

static void balance_move(struct manager *manager, const struct balance *balance, const struct balance_choice *choice,
			 int64_t now)
{
	struct tenant *tenant = choice->tenant;
	const unsigned on = choice->part.on, to = choice->gain.to;
	uint64_t places = 0;
	const char *why;
	int r = gpu_assign_move(tenant, balance->gpus[on]->uuid, balance->gpus[to]->uuid, &places, &why);

	tenant->moved_at = now;
	tenant->balance.unlike_since = 0;
	manager->changed = true;
	audit_write("balance", tenant,
		    json_pack("{s:s, s:s, s:f, s:f, s:f}", "from", balance->gpus[on]->uuid, "to",
			      balance->gpus[to]->uuid, "fromLoad", (double)balance->loads[on] / BALANCE_ALL, "toLoad",
			      (double)balance->loads[to] / BALANCE_ALL, "load",
			      (double)choice->part.load / BALANCE_ALL));
	if (r == 0)
		r = suspension_move(manager, tenant, places, &why);
	if (r == 0)
		return;
	(void)snprintf(tenant->suspension.trouble, sizeof(tenant->suspension.trouble), "%s", why);
	audit_write("move-failed", tenant, json_pack("{s:s}", "why", why));
}

static void balance_forget(struct manager *manager)
{
	for (struct tenant *tenant = manager->tenants; tenant; tenant = tenant->next)
		tenant->balance.looked_at = tenant->balance.unlike_since = 0;
	manager->balance_at = 0;
}

/* Until the next look. Programs that prepare their work pause for a moment: what is compared is all of this time. */
static int64_t balance_pause(const struct manager *manager)
{
	int64_t pause = BALANCE_LOOK_MOST_MS;

	for (const struct tenant *tenant = manager->tenants; tenant; tenant = tenant->next)
		if (balance_is_of(tenant) && (int64_t)tenant->limits.balance * SECOND_MS / BALANCE_LOOKS < pause)
			pause = (int64_t)tenant->limits.balance * SECOND_MS / BALANCE_LOOKS;
	return pause > BALANCE_LOOK_LEAST_MS ? pause : BALANCE_LOOK_LEAST_MS;
}

void balance_look(struct manager *manager, int64_t now)
{
	struct balance balance = {0};
	struct balance_choice choice;

	if (!balance_is_thinkable(manager)) {
		balance_forget(manager);
		return;
	}
	if (now < manager->balance_at)
		return;
	manager->balance_at = now + balance_pause(manager);
	decider_measure(manager);
	balance_add_loads(manager, &balance, now);
	(void)gpu_assign_read_exclusive(&balance.exclusive);
	choice = balance_choose(manager, &balance, now);
	for (struct tenant *tenant = manager->tenants; tenant; tenant = tenant->next)
		balance_note(tenant, now);
	if (choice.tenant && !suspension_moves_any(manager))
		balance_move(manager, &balance, &choice, now);
	device_names_clear(&balance.exclusive);
}

int64_t balance_next(const struct manager *manager)
{
	return balance_is_thinkable(manager) ? manager->balance_at : INT64_MAX;
}
