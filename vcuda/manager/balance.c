/* SPDX-License-Identifier: Apache-2.0 */

/* Which containers are moved: those of drained GPUs, and those by which a GPU has more work than another. */

#include "vcuda/manager/balance.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "model/adapter.h"
#include "model/device_name.h"
#include "vcuda/manager/manager.h"

enum { DRAIN_AGAIN_MS = 10 * 1000 /* what could not be moved */ };

/* ---- drained GPUs ---- */

/* Return: its place among them; their number: it is none of them. */
static size_t drain_find(const struct manager *manager, const char *uuid)
{
	uint8_t wanted[16] = {0}, bytes[16];
	size_t i = 0;

	(void)adapter_read_uuid(uuid, wanted);
	while (i < manager->drained_count &&
	       (!adapter_read_uuid(manager->drained[i], bytes) || memcmp(bytes, wanted, sizeof(bytes)) != 0))
		i++;
	return i;
}

static bool drain_is_of(const struct manager *manager, const struct gpu *gpu)
{
	return drain_find(manager, gpu->uuid) < manager->drained_count;
}

int drain_begin(struct manager *manager, const char *uuid, const char **ret_why)
{
	uint8_t bytes[16];
	char *copy;

	*ret_why = "a GPU is named by something that is not a UUID";
	if (!adapter_read_uuid(uuid, bytes))
		return -EINVAL;
	/* Asked for once more, it is tried at once. */
	for (struct tenant *tenant = manager->tenants; tenant; tenant = tenant->next)
		tenant->drain_at = 0;
	if (drain_find(manager, uuid) < manager->drained_count)
		return 0;
	*ret_why = "as many GPUs are drained as the manager knows";
	if (manager->drained_count == MANAGER_GPUS_MAX)
		return -ENOSPC;
	copy = strdup(uuid);
	*ret_why = strerror(ENOMEM);
	if (!copy)
		return -ENOMEM;
	manager->drained[manager->drained_count++] = copy;
	manager->changed = true;
	audit_write("drain", NULL, json_pack("{s:s}", "gpu", uuid));
	return 0;
}

int drain_end(struct manager *manager, const char *uuid, const char **ret_why)
{
	const size_t at = drain_find(manager, uuid);

	*ret_why = "that GPU is not drained";
	if (at == manager->drained_count)
		return -EALREADY;
	free(manager->drained[at]);
	manager->drained[at] = manager->drained[--manager->drained_count];
	manager->changed = true;
	audit_write("undrain", NULL, json_pack("{s:s}", "gpu", uuid));
	return 0;
}

/* ---- where else their containers may go ---- */

/* One that is neither drained nor another container's alone, of the same model, with nothing of the container. */
bool drain_may_take(const struct manager *manager, const struct device_names *exclusive, const struct tenant *tenant,
		    size_t number, size_t place)
{
	const struct gpu *gpu = &tenant->gpus[place];

	return !gpu_assign_is_exclusive(exclusive, tenant, place) && !drain_is_of(manager, gpu) &&
	       !gpu_trouble_find(manager, gpu->bytes) &&
	       streq(gpu->name, manager_find_gpu(tenant, tenant->places, number)->name) &&
	       !gpu_assign_uses(tenant, tenant->places, gpu);
}

/*
 * For what a container has under a number: one of its GPUs that may take it. @skip: so many of these are passed over.
 * Return: the UUID; NULL.
 */
static const char *drain_find_target(const struct manager *manager, const struct tenant *tenant, size_t number,
				     unsigned skip)
{
	_cleanup_device_names_ struct device_names exclusive = {0};

	/* Settings that cannot be used keep it from any, and suspension_move() says so. */
	(void)gpu_assign_read_exclusive(&exclusive);
	for (size_t i = 0; i < tenant->reach; i++)
		if (drain_may_take(manager, &exclusive, tenant, number, i) && skip-- == 0)
			return tenant->gpus[i].uuid;
	return NULL;
}

/* Another one each time. */
static const char *drain_find_next_target(const struct manager *manager, struct tenant *tenant, size_t number)
{
	const char *found = drain_find_target(manager, tenant, number, tenant->drains);

	if (!found)
		tenant->drains = 0;
	return found ? found : drain_find_target(manager, tenant, number, 0);
}

/* Return: the number of a GPU of it that is on a drained one, if there is. */
static bool drain_concerns(const struct manager *manager, const struct tenant *tenant, size_t *ret)
{
	for (*ret = 0; *ret < tenant->gpu_count; ++*ret)
		if (drain_is_of(manager, manager_find_gpu(tenant, tenant->places, *ret)))
			return true;
	return false;
}

int drain_avoid(const struct manager *manager, struct tenant *tenant)
{
	const char *why, *to;
	size_t number;

	for (size_t i = tenant->gpu_count; i > 0 && tenant->gpu_count > 1; i--)
		if (drain_is_of(manager, &tenant->gpus[i - 1]) && !drain_find_target(manager, tenant, i - 1, 0))
			tenant_leave_out(tenant, i - 1);
	while (drain_concerns(manager, tenant, &number)) {
		to = drain_find_target(manager, tenant, number, 0);
		/* One that was given twice stays where it is. */
		if (!to || gpu_assign_move(tenant, manager_find_gpu(tenant, tenant->places, number)->uuid, to,
					   &tenant->places, &why) < 0)
			return -EHOSTDOWN;
	}
	return 0;
}

/* ---- moving them ---- */

static bool drain_is_due(const struct manager *manager, const struct tenant *tenant, int64_t now)
{
	size_t number;

	return !tenant->ending && now >= tenant->drain_at && drain_concerns(manager, tenant, &number);
}

static void drain_move(struct manager *manager, struct tenant *tenant, int64_t now)
{
	const char *why = "it may be moved to no other GPU of the same model that is not drained, or exclusive",
		   *to = NULL;
	uint64_t places;
	size_t number;
	int r = -EXDEV;

	tenant->drain_at = now + DRAIN_AGAIN_MS;
	if (drain_concerns(manager, tenant, &number))
		to = drain_find_next_target(manager, tenant, number);
	tenant->drains++;
	if (to)
		r = gpu_assign_move(tenant, manager_find_gpu(tenant, tenant->places, number)->uuid, to, &places, &why);
	if (r == 0)
		r = suspension_move(manager, tenant, places, &why);
	if (r < 0)
		(void)snprintf(tenant->suspension.trouble, sizeof(tenant->suspension.trouble), "%s", why);
}

void drain_look(struct manager *manager, int64_t now)
{
	if (manager->drained_count == 0)
		return;
	for (struct tenant *tenant = manager->tenants; tenant && !suspension_moves_any(manager); tenant = tenant->next)
		if (drain_is_due(manager, tenant, now))
			drain_move(manager, tenant, now);
}

int64_t drain_next(const struct manager *manager, int64_t now)
{
	int64_t next = INT64_MAX;
	size_t number;

	if (manager->drained_count == 0 || suspension_moves_any(manager))
		return INT64_MAX;
	for (const struct tenant *tenant = manager->tenants; tenant; tenant = tenant->next)
		if (!tenant->ending && tenant->drain_at < next && drain_concerns(manager, tenant, &number))
			next = tenant->drain_at > now ? tenant->drain_at : now;
	return next;
}

enum {
	BALANCE_LOOKS = 4, /* within the time for which the load is to be unlike, but not */
	BALANCE_LOOK_LEAST_MS = 500,
	BALANCE_LOOK_MOST_MS = 4000, /* the decider goes on measuring for longer */
	BALANCE_NS_EACH_MS = 1000 * 1000,
	SECOND_MS = 1000
};

/* ---- moving by itself: what is decided ---- */

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

/* ---- moving by itself: what there is ---- */

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

/* ---- moving by itself: one after the other ---- */

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

/* Of a GPU's time, as the audit has it. */
static double balance_share(unsigned load)
{
	return load / (double)BALANCE_ALL;
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
			      balance->gpus[to]->uuid, "fromLoad", balance_share(balance->loads[on]), "toLoad",
			      balance_share(balance->loads[to]), "load", balance_share(choice->part.load)));
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
