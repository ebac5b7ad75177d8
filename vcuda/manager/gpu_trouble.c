/* SPDX-License-Identifier: Apache-2.0 */

#include "vcuda/manager/manager.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"

enum { ECC_UNCORRECTABLE = 214, NVLINK_UNCORRECTABLE = 220, WORD_MS = 10 * 60 * 1000 };

const struct gpu_trouble *gpu_trouble_find(const struct manager *manager, const uint8_t uuid[static 16])
{
	for (size_t i = 0; i < manager->trouble_count; i++)
		if (memcmp(manager->troubles[i].gpu.bytes, uuid, sizeof(manager->troubles[i].gpu.bytes)) == 0)
			return &manager->troubles[i];
	return NULL;
}

bool gpu_trouble_is_lost(const struct manager *manager, const struct gpu *gpu)
{
	const struct gpu_trouble *trouble = gpu_trouble_find(manager, gpu->bytes);

	return trouble && trouble->lost;
}

size_t gpu_trouble_count_lost(const struct manager *manager, const struct tenant *tenant)
{
	size_t count = 0;

	for (size_t i = 0; i < tenant->gpu_count; i++)
		count += gpu_trouble_is_lost(manager, manager_find_gpu(tenant, tenant->places, i));
	return count;
}

static void gpu_trouble_forget(struct manager *manager, size_t i)
{
	free(manager->troubles[i].gpu.uuid);
	free(manager->troubles[i].gpu.name);
	manager->troubles[i] = manager->troubles[--manager->trouble_count];
}

int gpu_trouble_clear(struct manager *manager, const char *text)
{
	size_t found = 0, count = 0;

	for (size_t i = 0; i < manager->trouble_count; i++)
		if (*text && str_has_prefix(manager->troubles[i].gpu.uuid, text)) {
			found = i;
			count++;
		}
	if (count != 1)
		return count == 0 ? -ENOENT : -ENOTUNIQ;
	audit_write("gpu-cleared", NULL, json_pack("{s:s}", "gpu", manager->troubles[found].gpu.uuid));
	gpu_trouble_forget(manager, found);
	return 0;
}

/* A container's, by which it is known. */
const struct gpu *gpu_trouble_find_gpu(const struct manager *manager, const uint8_t uuid[static 16])
{
	for (const struct tenant *tenant = manager->tenants; tenant; tenant = tenant->next)
		for (size_t i = 0; i < tenant->reach; i++)
			if (memcmp(tenant->gpus[i].bytes, uuid, sizeof(tenant->gpus[i].bytes)) == 0)
				return &tenant->gpus[i];
	return NULL;
}

/* Return: it, new or as it is known; NULL: nobody has it any more, or there is no place. */
struct gpu_trouble *gpu_trouble_note(struct manager *manager, const uint8_t uuid[static 16])
{
	struct gpu_trouble *trouble = (struct gpu_trouble *)(uintptr_t)gpu_trouble_find(manager, uuid);
	const struct gpu *gpu = gpu_trouble_find_gpu(manager, uuid);

	if (trouble || !gpu || manager->trouble_count == MANAGER_TROUBLES)
		return trouble;
	trouble = &manager->troubles[manager->trouble_count];
	*trouble = (struct gpu_trouble){.gpu = {.uuid = strdup(gpu->uuid), .name = strdup(gpu->name)}};
	memcpy(trouble->gpu.bytes, uuid, sizeof(trouble->gpu.bytes));
	manager->trouble_count++;
	if (trouble->gpu.uuid && trouble->gpu.name)
		return trouble;
	gpu_trouble_forget(manager, manager->trouble_count - 1);
	return NULL;
}

void gpu_trouble_state(struct gpu_trouble *trouble, bool lost, const char *why)
{
	trouble->lost = lost;
	trouble->ends_at = 0;
	trouble->since = time(NULL);
	(void)snprintf(trouble->why, sizeof(trouble->why), "%s", why);
	audit_write(lost ? "gpu-lost" : "gpu-suspected", NULL,
		    json_pack("{s:s, s:s}", "gpu", trouble->gpu.uuid, "why", trouble->why));
}

void gpu_trouble_suspect(struct manager *manager, const uint8_t uuid[static 16], const char *why, int64_t ends_at)
{
	struct gpu_trouble *trouble = gpu_trouble_note(manager, uuid);

	if (!trouble || (*trouble->why && !trouble->ends_at))
		return;
	/* Said once more, it is not told once more. What is known for certain is. */
	if (!*trouble->why || !ends_at)
		gpu_trouble_state(trouble, false, why);
	trouble->ends_at = ends_at;
}

void gpu_trouble_look(struct manager *manager, int64_t now)
{
	for (size_t i = manager->trouble_count; i > 0; i--) {
		const struct gpu_trouble *trouble = &manager->troubles[i - 1];

		if (!trouble->ends_at || now < trouble->ends_at)
			continue;
		audit_write("gpu-cleared", NULL, json_pack("{s:s, s:s}", "gpu", trouble->gpu.uuid, "why", "time"));
		gpu_trouble_forget(manager, i - 1);
	}
}

int64_t gpu_trouble_next(const struct manager *manager)
{
	int64_t next = INT64_MAX;

	for (size_t i = 0; i < manager->trouble_count; i++)
		if (manager->troubles[i].ends_at && manager->troubles[i].ends_at < next)
			next = manager->troubles[i].ends_at;
	return next;
}

void gpu_trouble_receive(struct manager *manager, const struct tenant *tenant, const struct start_event *event)
{
	const uint64_t gpu = (event->number >> START_EVENT_GPU_BIT) - 1;
	const uint32_t result = (uint32_t)event->number;
	char why[START_NAME];

	if (event->kind != START_EVENT_STICKY || gpu >= tenant->gpu_count ||
	    (result != ECC_UNCORRECTABLE && result != NVLINK_UNCORRECTABLE))
		return;
	if (manager->watcher.watches) {
		manager->watcher.asked = true;
		return;
	}
	(void)snprintf(why, sizeof(why), "CUDA error %u", result);
	gpu_trouble_suspect(manager, manager_find_gpu(tenant, tenant->places, gpu)->bytes, why,
			    manager_now() + WORD_MS);
}
