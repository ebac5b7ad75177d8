/* SPDX-License-Identifier: Apache-2.0 */

#include "nvidia/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/fd.h"
#include "base/paths.h"

#define CAPABILITIES PATH_PROC_NVIDIA "/capabilities"

enum {
	INSTANCES_MAX = 64, /* of one kind in one GPU; there are 7 and 8 today */
	INSTANCE_ID_MAX = 4096,
	CAPABILITY_MINOR_MAX = (1 << 20) - 1, /* MINORMASK of include/linux/kdev_t.h */
};

/* The number behind "gi" or "ci"; -1 if the name is something else. */
static int mig_parse_id(const char *name)
{
	char *end;
	long id;

	if ((!str_has_prefix(name, "gi") && !str_has_prefix(name, "ci")) || name[2] < '0' || name[2] > '9')
		return -1;
	id = strtol(name + 2, &end, 10);
	return *end == '\0' && id <= INSTANCE_ID_MAX ? (int)id : -1;
}

static bool mig_is_gpu_instance(const char *name)
{
	return name[0] == 'g' && mig_parse_id(name) >= 0;
}

static bool mig_is_compute_instance(const char *name)
{
	return name[0] == 'c' && mig_parse_id(name) >= 0;
}

static int mig_compare_ids(const void *a, const void *b)
{
	return mig_parse_id(*(char *const *)a) - mig_parse_id(*(char *const *)b);
}

static int mig_list_instances(const char *path, bool (*is_wanted)(const char *name), struct strv *ret)
{
	int r = fd_list_names(AT_FDCWD, path, is_wanted, INSTANCES_MAX, ret);

	if (ret->count > 1)
		qsort(ret->items, ret->count, sizeof(*ret->items), mig_compare_ids);
	return r == -ENOMEM ? r : 0;
}

static int mig_note(struct mig_parts *parts, const struct adapter *part)
{
	struct mig_part *items = array_grow(parts->items, parts->count, sizeof(*items));

	if (!items)
		return -ENOMEM;
	parts->items = items;
	items[parts->count++] = (struct mig_part){part->minor, part->gpu_instance, part->compute_instance};
	return 0;
}

static int mig_add_part(struct inventory *inventory, size_t position, int number, int gpu_instance,
			int compute_instance, struct mig_parts *parts)
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

	/* The name that is known without the vendor's library: "MIG-GPU-<uuid>/<GPU instance>/<compute instance>". */
	if (whole->uuid)
		(void)str_format(&part.uuid, "MIG-%s/%d/%d", whole->uuid, gpu_instance, compute_instance);
	part.pci_address = whole->pci_address ? strdup(whole->pci_address) : NULL;
	(void)str_format(&part.name, "%s MIG %d/%d", whole->name ? whole->name : "GPU", gpu_instance, compute_instance);
	if (!part.name || (whole->uuid && !part.uuid) || (whole->pci_address && !part.pci_address) ||
	    mig_note(parts, &part) < 0) {
		adapter_clear(&part);
		return -ENOMEM;
	}
	return inventory_take(inventory, &part);
}

int mig_read_parts(struct inventory *inventory, size_t position, struct mig_parts *parts)
{
	_cleanup_strv_ struct strv gpu_instances = {0};
	_cleanup_free_ char *path = NULL;
	int number = 0, r;

	if (str_format(&path, CAPABILITIES "/gpu%d/mig", inventory->adapters[position].minor) < 0)
		return -ENOMEM;
	r = mig_list_instances(path, mig_is_gpu_instance, &gpu_instances);
	for (size_t i = 0; i < gpu_instances.count && r == 0; i++) {
		_cleanup_strv_ struct strv compute_instances = {0};
		_cleanup_free_ char *instance = NULL;

		if (str_format(&instance, "%s/%s", path, gpu_instances.items[i]) < 0)
			return -ENOMEM;
		r = mig_list_instances(instance, mig_is_compute_instance, &compute_instances);
		for (size_t j = 0; j < compute_instances.count && r == 0; j++)
			r = mig_add_part(inventory, position, number++, mig_parse_id(gpu_instances.items[i]),
					 mig_parse_id(compute_instances.items[j]), parts);
	}
	return r;
}

/* ---- plan ---- */

int mig_plan_capability(const struct module *module, const char *name, const char *reason, struct plan *plan,
			struct err *err)
{
	_cleanup_free_ char *file = NULL, *text = NULL, *node = NULL;
	struct plan_device device = {.access = "rw"};
	unsigned number;
	struct stat st;
	int r;

	/* Without nodes the file is the capability, and the container's own /proc has it. */
	if (proc_device_major(module->devices, "nvidia-caps", &number) < 0)
		return 0;
	if (str_format(&file, CAPABILITIES "/%s", name) < 0)
		return -ENOMEM;
	r = module_read_small(file, &text);
	if (r == 0)
		r = proc_number(text, "DeviceFileMinor", CAPABILITY_MINOR_MAX, &number);
	if (r < 0)
		return err_set(err, r, "cannot read the capability %s: %m", file);
	if (str_format(&node, PATH_NVIDIA_CAPS "/nvidia-cap%u", number) < 0)
		return -ENOMEM;
	if (module_node(module, node, "nvidia-caps", number, &st) < 0)
		return err_set_advised(err, CTR_GPU_E_NO_ADAPTER,
				       ("the node %s of the capability %s is missing or another driver's", node, name),
				       ("ctr-gpu load makes it."));
	device.number = st.st_rdev;
	device.path = steal_ptr(node);
	device.reason = strdup(reason);
	return plan_add_device(plan, &device);
}

static int mig_plan_part(const struct module *module, const struct mig_part *part, struct plan *plan, struct err *err)
{
	_cleanup_free_ char *gpu_name = NULL, *gpu_reason = NULL, *name = NULL, *reason = NULL;
	int r;

	if (str_format(&gpu_name, "gpu%d/mig/gi%d/access", part->minor, part->gpu_instance) < 0 ||
	    str_format(&gpu_reason, "MIG: GPU instance %d of GPU with minor %d", part->gpu_instance, part->minor) < 0 ||
	    str_format(&name, "gpu%d/mig/gi%d/ci%d/access", part->minor, part->gpu_instance, part->compute_instance) <
		    0 ||
	    str_format(&reason, "MIG: compute instance %d in GPU instance %d", part->compute_instance,
		       part->gpu_instance) < 0)
		return -ENOMEM;
	r = mig_plan_capability(module, gpu_name, gpu_reason, plan, err);
	return r == 0 ? mig_plan_capability(module, name, reason, plan, err) : r;
}

static bool mig_is_of(const struct mig_part *part, const struct adapter *adapter)
{
	return part->minor == adapter->minor &&
	       (!adapter->is_part ||
		(part->gpu_instance == adapter->gpu_instance && part->compute_instance == adapter->compute_instance));
}

int mig_plan(const struct module *module, const struct mig_parts *parts, const struct adapter *adapter,
	     struct plan *plan, struct err *err)
{
	int r = 0;

	for (size_t i = 0; i < parts->count && r == 0; i++)
		if (mig_is_of(&parts->items[i], adapter))
			r = mig_plan_part(module, &parts->items[i], plan, err);
	return r;
}
