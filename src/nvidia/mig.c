/* SPDX-License-Identifier: Apache-2.0 */

#include "nvidia/mig.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>

#include "nvidia/proc.h"

#define CAPABILITIES NVIDIA_PROC "/capabilities"

enum {
	INSTANCES_MAX = 64, /* of one kind in one GPU; there are 7 and 8 today */
	INSTANCE_ID_MAX = 4096,
	CAPABILITY_MINOR_MAX = (1 << 20) - 1, /* MINORMASK of include/linux/kdev_t.h */
};

struct ids {
	int items[INSTANCES_MAX];
	size_t count;
};

static int mig_compare_ids(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

/* The number behind @prefix in "gi3"; -1 if the name is something else. */
static int mig_parse_id(const char *name, const char *prefix)
{
	const char *digits = name + strlen(prefix);
	char *end;
	long id;

	if (!str_has_prefix(name, prefix) || *digits < '0' || *digits > '9')
		return -1;
	id = strtol(digits, &end, 10);
	return *end == '\0' && id <= INSTANCE_ID_MAX ? (int)id : -1;
}

static void mig_list_ids(const char *path, const char *prefix, struct ids *ret)
{
	DIR *directory = opendir(path);
	const struct dirent *entry;

	ret->count = 0;
	if (!directory)
		return;
	while (ret->count < INSTANCES_MAX && (entry = readdir(directory))) {
		int id = mig_parse_id(entry->d_name, prefix);

		if (id >= 0)
			ret->items[ret->count++] = id;
	}
	(void)closedir(directory);
	qsort(ret->items, ret->count, sizeof(*ret->items), mig_compare_ids);
}

/* The name that is known without the vendor's library: "MIG-GPU-<uuid>/<GPU instance>/<compute instance>". */
static int mig_name_part(const struct adapter *whole, struct adapter *part)
{
	if (whole->uuid &&
	    str_format(&part->uuid, "MIG-%s/%d/%d", whole->uuid, part->gpu_instance, part->compute_instance) < 0)
		return -ENOMEM;
	part->pci_address = whole->pci_address ? strdup(whole->pci_address) : NULL;
	if (whole->pci_address && !part->pci_address)
		return -ENOMEM;
	return str_format(&part->name, "%s MIG %d/%d", whole->name ? whole->name : "GPU", part->gpu_instance,
			  part->compute_instance);
}

static int mig_add_part(struct inventory *inventory, size_t position, int number, int gpu_instance,
			int compute_instance)
{
	const struct adapter *whole = &inventory->adapters[position];
	struct adapter part = {
		.backend = whole->backend,
		.index = -1,
		.whole = -1,
		.vendor_id = whole->vendor_id,
		.device_id = whole->device_id,
		.minor = whole->minor,
		.is_part = true,
		.part = number,
		.gpu_instance = gpu_instance,
		.compute_instance = compute_instance,
	};

	if (mig_name_part(whole, &part) < 0) {
		adapter_clear(&part);
		return -ENOMEM;
	}
	return inventory_take(inventory, &part);
}

int mig_read_parts(struct inventory *inventory, size_t position)
{
	int minor = inventory->adapters[position].minor, number = 0, r = 0;
	_cleanup_free_ char *path = NULL;
	struct ids gpu_instances;

	if (str_format(&path, CAPABILITIES "/gpu%d/mig", minor) < 0)
		return -ENOMEM;
	mig_list_ids(path, "gi", &gpu_instances);
	for (size_t i = 0; i < gpu_instances.count && r == 0; i++) {
		_cleanup_free_ char *instance = NULL;
		struct ids compute_instances;

		if (str_format(&instance, "%s/gi%d", path, gpu_instances.items[i]) < 0)
			return -ENOMEM;
		mig_list_ids(instance, "ci", &compute_instances);
		for (size_t j = 0; j < compute_instances.count && r == 0; j++)
			r = mig_add_part(inventory, position, number++, gpu_instances.items[i],
					 compute_instances.items[j]);
	}
	return r;
}

/* ---- plan ---- */

int mig_plan_capability(const struct module *module, const char *name, const char *reason, struct plan *plan,
			struct err *err)
{
	_cleanup_free_ char *file = NULL, *text = NULL;
	struct plan_device device = {.access = "rw"};
	unsigned number;
	int r;

	/* Without nodes the file is the capability, and the container's own /proc has it. */
	if (proc_device_major(module->devices, "nvidia-caps", &number) < 0)
		return 0;
	if (str_format(&file, CAPABILITIES "/%s", name) < 0)
		return -ENOMEM;
	r = module_read_file(file, &text);
	if (r == 0)
		r = proc_number(text, "DeviceFileMinor", CAPABILITY_MINOR_MAX, &number);
	if (r < 0)
		return err_set(err, r, "cannot read the capability %s: %m", file);
	if (str_format(&device.path, "/dev/nvidia-caps/nvidia-cap%u", number) < 0 ||
	    str_format(&device.reason, "%s", reason) < 0) {
		free(device.path);
		return -ENOMEM;
	}
	r = module_node(module, device.path, "nvidia-caps", &device.number);
	if (r == 0)
		return plan_add_device(plan, &device);
	err_set(err, CTR_GPU_E_NO_ADAPTER,
		"the node %s of the capability %s is missing or another driver's\nctr-gpu load makes it.", device.path,
		name);
	free(device.path);
	free(device.reason);
	return CTR_GPU_E_NO_ADAPTER;
}

static int mig_plan_gpu_instance(const struct module *module, int minor, int id, struct plan *plan, struct err *err)
{
	_cleanup_free_ char *name = NULL, *reason = NULL;

	if (str_format(&name, "gpu%d/mig/gi%d/access", minor, id) < 0 ||
	    str_format(&reason, "MIG: GPU instance %d of GPU with minor %d", id, minor) < 0)
		return -ENOMEM;
	return mig_plan_capability(module, name, reason, plan, err);
}

static int mig_plan_compute_instance(const struct module *module, const struct adapter *part, struct plan *plan,
				     struct err *err)
{
	_cleanup_free_ char *name = NULL, *reason = NULL;
	int r;

	r = mig_plan_gpu_instance(module, part->minor, part->gpu_instance, plan, err);
	if (r != 0)
		return r;
	if (str_format(&name, "gpu%d/mig/gi%d/ci%d/access", part->minor, part->gpu_instance, part->compute_instance) <
		    0 ||
	    str_format(&reason, "MIG: compute instance %d in GPU instance %d", part->compute_instance,
		       part->gpu_instance) < 0)
		return -ENOMEM;
	return mig_plan_capability(module, name, reason, plan, err);
}

int mig_plan(const struct module *module, const struct adapter *adapter, struct plan *plan, struct err *err)
{
	struct inventory parts = {0};
	struct adapter whole = {.backend = adapter->backend, .minor = adapter->minor};
	int r;

	if (adapter->is_part)
		return mig_plan_compute_instance(module, adapter, plan, err);
	r = inventory_take(&parts, &whole);
	if (r == 0)
		r = mig_read_parts(&parts, 0);
	for (size_t i = 1; i < parts.count && r == 0; i++)
		r = mig_plan_compute_instance(module, &parts.adapters[i], plan, err);
	inventory_clear(&parts);
	return r;
}
