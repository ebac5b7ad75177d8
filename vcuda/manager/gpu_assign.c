/* SPDX-License-Identifier: Apache-2.0 */

/* Which GPUs are lost or suspected, and which of those that are well a container gets. */

#include "vcuda/manager/manager.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "lib/context.h"
#include "model/adapter.h"
#include "model/device_name.h"

/* ---- what is known against GPUs ---- */

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

/* ---- who has which ---- */

/* What a GPU is taken to have where only shares of it are compared with amounts. */
#define GPU_ASSIGN_WHOLE ((uint64_t)64 << 30)

bool gpu_assign_uses(const struct tenant *tenant, uint64_t places, const struct gpu *gpu)
{
	for (size_t i = 0; i < tenant->gpu_count; i++)
		if (memcmp(manager_find_gpu(tenant, places, i)->bytes, gpu->bytes, sizeof(gpu->bytes)) == 0)
			return true;
	return false;
}

struct gpu_assign_load {
	bool suspected;
	uint64_t memory;
	size_t clients;
};

static struct gpu_assign_load gpu_assign_measure(const struct manager *manager, const struct gpu *gpu)
{
	struct gpu_assign_load load = {.suspected = gpu_trouble_find(manager, gpu->bytes)};

	for (const struct tenant *other = manager->tenants; other; other = other->next) {
		if (other->first < 0 || other->ending ||
		    memcmp(manager_find_gpu(other, other->places, (size_t)other->first)->bytes, gpu->bytes,
			   sizeof(gpu->bytes)) != 0)
			continue;
		load.clients += other->clients;
		/* A container that may take all of it counts more than one with a limit. */
		if (__builtin_add_overflow(load.memory, str_share_of(other->limits.memory, GPU_ASSIGN_WHOLE),
					   &load.memory))
			load.memory = UINT64_MAX;
	}
	return load;
}

/* Who is better has less of the first that differs. */
static bool gpu_assign_is_better(struct gpu_assign_load one, struct gpu_assign_load other)
{
	if (one.suspected != other.suspected)
		return other.suspected;
	return one.memory != other.memory ? one.memory < other.memory : one.clients < other.clients;
}

size_t gpu_assign_choose(const struct manager *manager, const struct tenant *tenant)
{
	struct gpu_assign_load least = {0};
	size_t chosen = tenant->gpu_count;

	for (size_t i = 0; i < tenant->gpu_count; i++) {
		const struct gpu *gpu = manager_find_gpu(tenant, tenant->places, i);
		struct gpu_assign_load load = gpu_assign_measure(manager, gpu);

		if (gpu_trouble_is_lost(manager, gpu) ||
		    (chosen < tenant->gpu_count && !gpu_assign_is_better(load, least)))
			continue;
		least = load;
		chosen = i;
	}
	return chosen;
}

static void gpu_assign_list_one(const struct tenant *tenant, size_t number, struct start *ret)
{
	const struct gpu *gpu = &tenant->gpus[number];
	struct start_gpu *to = &ret->gpus[ret->reach];

	memcpy(to->uuid, gpu->bytes, sizeof(to->uuid));
	to->place = pci_address_number(gpu->address);
	to->number = (uint32_t)number;
	ret->reach++;
}

/* Its programs see those under whose number there is one that is not lost. */
static bool gpu_assign_is_seen(const struct manager *manager, const struct tenant *tenant, size_t number)
{
	return number < tenant->gpu_count &&
	       !gpu_trouble_is_lost(manager, manager_find_gpu(tenant, tenant->places, number));
}

/* What they do not see may still be where one is that they see. */
void gpu_assign_list(const struct manager *manager, const struct tenant *tenant, struct start *ret)
{
	const size_t first = tenant->first < 0 ? 0 : (size_t)tenant->first;

	ret->reach = 0;
	for (size_t i = 0; i < tenant->gpu_count; i++)
		if (gpu_assign_is_seen(manager, tenant, (first + i) % tenant->gpu_count))
			gpu_assign_list_one(tenant, (first + i) % tenant->gpu_count, ret);
	ret->gpu_count = ret->reach;
	for (size_t i = 0; i < tenant->reach; i++)
		if (!gpu_assign_is_seen(manager, tenant, i) && !gpu_trouble_is_lost(manager, &tenant->gpus[i]))
			gpu_assign_list_one(tenant, i, ret);
}

/* Return: the number of one of all its GPUs; -1. */
static ssize_t gpu_assign_find(const struct tenant *tenant, const char *uuid)
{
	uint8_t bytes[16];

	for (size_t i = 0; adapter_read_uuid(uuid, bytes) && i < tenant->reach; i++)
		if (memcmp(tenant->gpus[i].bytes, bytes, sizeof(bytes)) == 0)
			return (ssize_t)i;
	return -1;
}

/* Return: the number of the GPU that is there now. */
static unsigned gpu_assign_find_name(const struct tenant *tenant, size_t place)
{
	unsigned number = 0;

	while (number < tenant->reach && start_place(tenant->places, number) != place)
		number++;
	return number;
}

int gpu_assign_move(const struct tenant *tenant, const char *from, const char *to, uint64_t *ret, const char **ret_why)
{
	const ssize_t there = gpu_assign_find(tenant, to);
	const size_t first = tenant->first < 0 ? 0 : (size_t)tenant->first;
	const ssize_t here =
		*from ? gpu_assign_find(tenant, from) : (ssize_t)start_place(tenant->places, (unsigned)first);
	unsigned one, other;

	*ret_why = "it has nothing on that GPU";
	if (here < 0 || gpu_assign_find_name(tenant, (size_t)here) >= tenant->gpu_count)
		return -ENOENT;
	*ret_why = "its servers may not use that GPU: it was not given it when it began";
	if (there < 0)
		return -EXDEV;
	*ret_why = "it is there already";
	if (here == there)
		return -EALREADY;
	*ret_why = "that GPU is of another model, and NVIDIA's driver brings nothing back there";
	if (!streq(tenant->gpus[here].name, tenant->gpus[there].name))
		return -EXDEV;
	one = gpu_assign_find_name(tenant, (size_t)here);
	other = gpu_assign_find_name(tenant, (size_t)there);
	*ret = start_exchange(tenant->places, one, other);
	return 0;
}

/* ---- GPUs that one container has alone ---- */

/* Of what is none of NVIDIA's GPUs. A PCI address is of one device, whatever is in front of it. */
static bool gpu_assign_is_others(const struct device_name *name)
{
	return !name->has_address && (name->is_npu || (name->domain && !streq(name->domain, DOMAIN_NVIDIA)));
}

/* By the names that `ctr-gpu assign` writes: others were known when the container began, which was not given these. */
static bool gpu_assign_is_meant(const struct device_name *name, const struct gpu *gpu)
{
	struct pci_address address;

	if (gpu_assign_is_others(name))
		return false;
	if (name->type == DEVICE_NAME_ALL)
		return true;
	if (name->has_address)
		return pci_address_read(gpu->address, &address) && pci_address_equal(&address, &name->address);
	/* Or how it begins. Other vendors' are longer or shorter, and begin none of these. */
	return name->is_uuid && !name->is_of_part && strncasecmp(gpu->uuid, name->name, strlen(name->name)) == 0;
}

/* Whether the host need not be looked at to know. The rest are numbers, LUIDs, and words. */
static bool gpu_assign_is_decided(const struct device_name *name)
{
	return name->type == DEVICE_NAME_ALL || name->type == DEVICE_NAME_NONE || name->type == DEVICE_NAME_VOID ||
	       name->has_address || name->is_of_part || name->is_uuid || gpu_assign_is_others(name);
}

/* Those that it was granted are its own, also where it comes back to one. */
bool gpu_assign_is_exclusive(const struct device_names *names, const struct tenant *tenant, size_t place)
{
	for (size_t k = 0; k < names->count && place >= tenant->gpu_count && place < tenant->reach; k++)
		if (!gpu_assign_is_decided(&names->items[k]) ||
		    gpu_assign_is_meant(&names->items[k], &tenant->gpus[place]))
			return true;
	return false;
}

int gpu_assign_read_exclusive(struct device_names *ret)
{
	struct settings settings;
	int r;

	settings_init(&settings);
	r = settings_load(&settings, NULL, NULL);
	for (size_t i = 0; i < settings.exclusive.count && r == 0; i++)
		r = device_names_split(ret, settings.exclusive.items[i]);
	settings_clear(&settings);
	return r;
}

int gpu_assign_check_exclusive(const struct tenant *tenant, uint64_t places, const char **ret_why)
{
	_cleanup_device_names_ struct device_names names = {0};

	*ret_why = "the configuration, which says what GPUs are exclusive, cannot be used: ctr-gpu doctor says why";
	if (gpu_assign_read_exclusive(&names) != 0)
		return -EPERM;
	*ret_why = "that GPU is exclusive, so one container that asks for it has it alone: ctr-gpu assign shows which";
	for (size_t k = 0; k < names.count; k++)
		if (!gpu_assign_is_decided(&names.items[k]))
			*ret_why = "that GPU may be exclusive: \"exclusive\" names one by another name than those that "
				   "ctr-gpu assign writes";
	for (size_t i = 0; i < tenant->gpu_count; i++) {
		const unsigned place = start_place(places, (unsigned)i);

		if (place != start_place(tenant->places, (unsigned)i) && gpu_assign_is_exclusive(&names, tenant, place))
			return -EPERM;
	}
	return 0;
}
