/* SPDX-License-Identifier: Apache-2.0 */

#include "vcuda/manager/manager.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "model/adapter.h"

/* What a GPU is taken to have where only shares of it are compared with amounts. */
#define GPU_ASSIGN_WHOLE ((uint64_t)64 << 30)

static int gpu_assign_read_digit(char character)
{
	if (character >= '0' && character <= '9')
		return character - '0';
	character |= 0x20;
	return character >= 'a' && character <= 'f' ? character - 'a' + 10 : -1;
}

bool gpu_assign_read_uuid(const char *text, uint8_t ret[static 16])
{
	static const char shape[] = "GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
	uint8_t bytes[16] = {0};
	size_t digits = 0;

	if (strlen(text) != strlen(shape))
		return false;
	for (size_t i = 0; shape[i]; i++) {
		int digit = gpu_assign_read_digit(text[i]);

		if (shape[i] != 'x' ? text[i] != shape[i] : digit < 0)
			return false;
		if (shape[i] != 'x')
			continue;
		bytes[digits / 2] = (uint8_t)(bytes[digits / 2] << 4 | digit);
		digits++;
	}
	memcpy(ret, bytes, sizeof(bytes));
	return true;
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
		    memcmp(other->gpus[other->first].bytes, gpu->bytes, sizeof(gpu->bytes)) != 0)
			continue;
		load.clients += other->clients;
		/* Whoever may take all of it counts as more than whoever may not. */
		if (__builtin_add_overflow(load.memory, str_share_of(other->memory, GPU_ASSIGN_WHOLE), &load.memory))
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
		struct gpu_assign_load load = gpu_assign_measure(manager, &tenant->gpus[i]);

		if (gpu_trouble_is_lost(manager, &tenant->gpus[i]) ||
		    (chosen < tenant->gpu_count && !gpu_assign_is_better(load, least)))
			continue;
		least = load;
		chosen = i;
	}
	return chosen;
}

void gpu_assign_list(const struct manager *manager, const struct tenant *tenant, struct start *ret)
{
	size_t first = tenant->first < 0 ? 0 : (size_t)tenant->first;

	ret->gpu_count = 0;
	for (size_t i = 0; i < tenant->gpu_count && i < START_GPUS; i++) {
		const size_t number = (first + i) % tenant->gpu_count;
		const struct gpu *gpu = &tenant->gpus[number];
		struct start_gpu *to = &ret->gpus[ret->gpu_count];

		if (gpu_trouble_is_lost(manager, gpu))
			continue;
		memcpy(to->uuid, gpu->bytes, sizeof(to->uuid));
		to->place = pci_address_number(gpu->address);
		to->number = (uint32_t)number;
		ret->gpu_count++;
	}
}
