/* SPDX-License-Identifier: Apache-2.0 */

#include "slurm/step.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/paths.h"
#include "base/str.h"
#include "lib/context.h"

void slurm_gpus_clear(struct slurm_gpus *gpus)
{
	for (size_t i = 0; i < gpus->count; i++)
		free(gpus->list[i].file);
}

/* As Slurm's AutoDetect writes the names that NVML gives. */
static void slurm_gpus_format_type(const char *name, char ret[static SLURM_TYPE_MAX])
{
	size_t size = 0;

	for (; name && *name && size + 1 < SLURM_TYPE_MAX; name++) {
		char c = *name >= 'A' && *name <= 'Z' ? (char)(*name - 'A' + 'a') : *name;
		bool fits = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.';

		if (fits || (size > 0 && ret[size - 1] != '_'))
			ret[size++] = fits ? c : '_';
	}
	while (size > 0 && ret[size - 1] == '_')
		size--;
	ret[size] = '\0';
}

/* How many GPUs of this vendor are before it, as the vendor's library counts them. */
static unsigned slurm_gpus_number(const struct ctr_gpu_host *host, size_t number, const char *vendor)
{
	struct ctr_gpu_adapter other;
	unsigned count = 0;

	for (size_t i = 0; i < number; i++)
		if (ctr_gpu_host_adapter(host, i, &other) == 0 && other.index >= 0 && streq(other.vendor, vendor))
			count++;
	return count;
}

static int slurm_gpus_find_file(const struct ctr_gpu_host *host, size_t number, const struct ctr_gpu_adapter *adapter,
				struct slurm_gpu *ret)
{
	struct ctr_gpu_driver driver = {0};
	int r;

	ret->made = ret->shared;
	ret->number = slurm_gpus_number(host, number, adapter->vendor);
	if (ret->made) {
		char vendor[SLURM_TYPE_MAX];

		slurm_gpus_format_type(adapter->vendor, vendor);
		return str_format(&ret->file, SLURM_NODES "/%s%u", vendor, ret->number);
	}
	r = ctr_gpu_host_driver(host, number, &driver);
	if (r == 0)
		r = str_format(&ret->file, "%s%d",
			       streq(adapter->backend, "nvidia") ? PATH_NVIDIA_GPU : PATH_DRI "/renderD", driver.minor);
	ctr_gpu_driver_clear(&driver);
	return r;
}

/* vCUDA serves NVIDIA's whole GPUs. */
static bool slurm_gpus_has_slots(const struct ctr_gpu_adapter *adapter, unsigned slots)
{
	return slots > 0 && streq(adapter->vendor, "NVIDIA");
}

static int slurm_gpus_add_slots(const struct slurm_gpu *gpu, unsigned slots, unsigned first, struct slurm_gpus *ret)
{
	int r = 0;

	for (unsigned i = 0; i < slots && ret->count < SLURM_GPUS_MAX && r == 0; i++) {
		struct slurm_gpu *slot = &ret->list[ret->count];

		*slot = *gpu;
		slot->slot = slot->made = true;
		(void)strcpy(slot->type, "vgpu");
		r = str_format(&slot->file, SLURM_NODES "/vgpu%u", first + i);
		ret->count += r == 0;
	}
	return r;
}

int slurm_gpus_list(const struct ctr_gpu_context *context, const struct ctr_gpu_host *host, struct slurm_gpus *ret)
{
	const unsigned slots = context->settings.vcuda_slots;
	unsigned made = 0;

	for (size_t i = 0; i < ctr_gpu_host_adapter_count(host) && ret->count < SLURM_GPUS_MAX; i++) {
		struct slurm_gpu gpu = {.position = i};
		struct ctr_gpu_adapter adapter;
		int r = ctr_gpu_host_adapter(host, i, &adapter);

		if (r < 0 || adapter.index < 0)
			continue;
		gpu.shared = streq(adapter.backend, "gpu-pv");
		if (slurm_gpus_has_slots(&adapter, slots)) {
			gpu.number = slurm_gpus_number(host, i, adapter.vendor);
			r = slurm_gpus_add_slots(&gpu, slots, made, ret);
			made += slots;
		} else {
			slurm_gpus_format_type(adapter.name ? adapter.name : adapter.vendor, gpu.type);
			r = slurm_gpus_find_file(host, i, &adapter, &gpu);
			if (r == 0)
				ret->list[ret->count++] = gpu;
		}
		if (r < 0)
			return r;
	}
	return 0;
}
