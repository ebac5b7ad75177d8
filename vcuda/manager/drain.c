/* SPDX-License-Identifier: Apache-2.0 */

#include "vcuda/manager/manager.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "model/adapter.h"
#include "model/device_name.h"

enum { DRAIN_AGAIN_MS = 10 * 1000 /* what could not be moved */ };

/* ---- which GPUs ---- */

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

/* ---- where else ---- */

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

/* ---- moving ---- */

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
