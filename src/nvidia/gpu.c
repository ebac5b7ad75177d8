/* SPDX-License-Identifier: Apache-2.0 */

/* NVIDIA's GPUs as adapters: their names and numbers, their parts (MIG), and what a container gets of them. */

#include "nvidia/internal.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/fd.h"
#include "base/paths.h"
#include "base/str.h"
#include "model/adapter.h"
#include "nvidia/nvidia.h"

/* ---- parts of a GPU (MIG) ---- */

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

/* Appends the parts of the GPU at @position, by GPU instance and compute instance. @parts: the same once more */
static int mig_read_parts(struct inventory *inventory, size_t position, struct mig_parts *parts)
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

/* ---- what a container gets of them ---- */

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

/* ---- what a GPU is, by its name and number ---- */

/* The first that fits counts. NVML's nvmlBrandType_t has the names. */
static const struct {
	const char *prefix, *brand;
} brands[] = {
	{"GeForce RTX", "geforcertx"},
	{"GeForce", "geforce"},
	{"Quadro RTX", "quadrortx"},
	{"Quadro", "quadro"},
	{"TITAN RTX", "titanrtx"},
	{"TITAN", "titan"},
	{"Tesla", "tesla"},
	{"RTX", "nvidiartx"},
	{"GRID", "grid"},
	{"NVS", "nvs"},
};

/* "H200", "A100-SXM4-80GB", "GH200 480GB": those since Ampere have letters, a number, and no brand but the maker's. */
static bool gpu_is_of_data_centre(const char *model)
{
	const size_t letters = strspn(model, "ABCDEFGHIJKLMNOPQRSTUVWXYZ");

	return letters > 0 && isdigit((unsigned char)model[letters]);
}

const char *gpu_brand(const char *model)
{
	static const char maker[] = "NVIDIA ";
	bool made = model && str_has_prefix(model, maker);

	if (!model)
		return NULL;
	/* Drivers of before 2021 leave the maker out. */
	model += made ? sizeof(maker) - 1 : 0;
	for (size_t i = 0; i < ARRAY_SIZE(brands); i++)
		if (str_has_prefix(model, brands[i].prefix))
			return brands[i].brand;
	return made && gpu_is_of_data_centre(model) ? "nvidia" : NULL;
}

/* Ranges of PCI device ids that belong to one chip family, from the driver's list of supported products. */
static const struct {
	uint16_t first, last;
	const char *architecture;
} families[] = {
	{0x15f0, 0x15ff, "6.0"},  /* GP100 */
	{0x1b00, 0x1bff, "6.1"},  /* GP102, GP104 */
	{0x1c00, 0x1cff, "6.1"},  /* GP106, GP107 */
	{0x1d00, 0x1d7f, "6.1"},  /* GP108 */
	{0x1d80, 0x1dff, "7.0"},  /* GV100 */
	{0x1e00, 0x1fff, "7.5"},  /* TU102, TU104, TU106, TU117 */
	{0x2180, 0x21ff, "7.5"},  /* TU116 */
	{0x2080, 0x20ff, "8.0"},  /* GA100 */
	{0x2200, 0x22ff, "8.6"},  /* GA102 */
	{0x2300, 0x23ff, "9.0"},  /* GH100 */
	{0x2400, 0x247f, "8.6"},  /* GA103 */
	{0x2480, 0x25ff, "8.6"},  /* GA104, GA106, GA107 */
	{0x2680, 0x28ff, "8.9"},  /* AD102 to AD107 */
	{0x2900, 0x29ff, "10.0"}, /* GB100, GB102 */
	{0x2b80, 0x2dff, "12.0"}, /* GB202, GB203, GB206, GB207 */
	{0x2e00, 0x2e7f, "12.1"}, /* GB20B, as in a GB10 */
	{0x2f00, 0x2f7f, "12.0"}, /* GB205 */
	{0x3180, 0x32ff, "10.3"}, /* GB110, GB112: B300, GB300 */
};

const char *gpu_architecture(uint32_t device_id)
{
	for (size_t i = 0; i < ARRAY_SIZE(families); i++)
		if (device_id >= families[i].first && device_id <= families[i].last)
			return families[i].architecture;
	return NULL;
}

/* ---- what the driver says of each ---- */

enum {
	GPUS_MAX = 256,  /* NV_MAX_DEVICES is 32 and has grown before */
	MINOR_MAX = 254, /* 255 is nvidiactl, 254 nvidia-modeset */
};

int gpu_parse_information(const char *text, struct adapter *adapter, bool *ret_excluded)
{
	_cleanup_free_ char *excluded = NULL, *uuid = NULL;
	unsigned minor;
	int r;

	r = proc_number(text, "Device Minor", MINOR_MAX - 1, &minor);
	if (r < 0)
		return r == -ENOMEM ? r : -EINVAL;
	adapter->minor = (int)minor;
	r = proc_field(text, "Model", &adapter->name);
	if (r == 0 || r == -ENOENT)
		r = proc_field(text, "GPU UUID", &uuid);
	/* The UUID is question marks until the GPU has been opened once since boot. */
	if (r == 0 && !strchr(uuid, '?') && str_has_prefix(uuid, "GPU-"))
		adapter->uuid = steal_ptr(uuid);
	if (r == 0 || r == -ENOENT)
		r = proc_field(text, "GPU Excluded", &excluded);
	if (r < 0 && r != -ENOENT)
		return r;
	*ret_excluded = excluded && !streq(excluded, "No");
	return 0;
}

static int gpu_refuse(struct adapter *adapter, const char *reason, const char *remedy)
{
	adapter->unusable = CTR_GPU_E_NO_ADAPTER;
	adapter->reason = strdup(reason);
	adapter->remedy = remedy;
	return adapter->reason ? 0 : -ENOMEM;
}

static int gpu_check_node(const struct module *module, struct adapter *adapter)
{
	_cleanup_free_ char *node = NULL;
	struct stat st;
	int r;

	if (str_format(&node, PATH_NVIDIA_GPU "%d", adapter->minor) < 0)
		return -ENOMEM;
	r = module_node(module, node, "nvidia", (unsigned)adapter->minor, &st);
	if (r == 0)
		return 0;
	adapter->unusable = CTR_GPU_E_NO_ADAPTER;
	adapter->remedy = r == -ENOENT ? "Make the node: sudo ctr-gpu load"
				       : "Put the right node there: sudo ctr-gpu load --replace";
	if (r == -ENOENT)
		return str_format(&adapter->reason, "its node %s is missing", node);
	return str_format(&adapter->reason, "%s is not the GPU's node", node);
}

/* As sysfs and the driver tell it now. @ret: what the driver wrote */
static int gpu_query(const char *address, struct adapter *adapter, bool *ret_excluded, char **ret)
{
	_cleanup_free_ char *path = NULL, *id_path = NULL, *id = NULL;
	int r;

	if (str_format(&path, PATH_PROC_NVIDIA "/gpus/%s/information", address) < 0 ||
	    str_format(&id_path, "/sys/bus/pci/devices/%s/device", address) < 0)
		return -ENOMEM;
	if (module_read_small(id_path, &id) == 0)
		adapter->device_id = (unsigned)strtoul(id, NULL, 16) & 0xffff;
	r = module_read_small(path, ret);
	return r == 0 ? gpu_parse_information(*ret, adapter, ret_excluded) : r;
}

/* From the cache. Return: false if that does not have it, or not whole; @adapter is unchanged then. */
static bool gpu_cache_get(struct nvidia_cache_gpu *gpu, struct adapter *adapter, bool *ret_excluded)
{
	struct adapter told = {.minor = -1};
	bool believed = gpu_parse_information(gpu->information, &told, ret_excluded) == 0 && told.uuid;

	if (believed) {
		adapter->minor = told.minor;
		adapter->name = steal_ptr(told.name);
		adapter->uuid = steal_ptr(told.uuid);
		adapter->device_id = gpu->device_id;
		gpu->is_here = true;
	}
	adapter_clear(&told);
	return believed;
}

/* To write of a GPU, the driver reads its PCI configuration, which takes a guest 0.2 ms. */
static int gpu_read(struct nvidia_cache *cache, const char *address, struct adapter *adapter, bool *ret_excluded)
{
	_cleanup_free_ char *binding = NULL, *text = NULL;
	struct nvidia_cache_gpu *gpu = NULL;
	int r;

	if (nvidia_cache_driver_binding(address, &binding) == -ENOMEM)
		return -ENOMEM;
	if (binding)
		gpu = nvidia_cache_find_gpu(cache, address, binding);
	if (gpu && gpu_cache_get(gpu, adapter, ret_excluded))
		return 0;
	r = gpu_query(address, adapter, ret_excluded, &text);
	/* A GPU without a UUID has not been opened yet. It gets its UUID later, so it is not cached. */
	return r == 0 && binding && adapter->uuid
		       ? nvidia_cache_put_gpu(cache, address, binding, adapter->device_id, text)
		       : r;
}

static int gpu_describe(struct nvidia_probe *probe, const char *address, struct adapter *adapter)
{
	bool excluded = false;
	int r;

	adapter->pci_address = strdup(address);
	if (!adapter->pci_address)
		return -ENOMEM;
	adapter->vendor_id = PCI_VENDOR_NVIDIA;
	r = gpu_read(&probe->known, address, adapter, &excluded);
	if (r == -ENOMEM)
		return r;
	if (r < 0)
		return gpu_refuse(adapter, "the driver does not describe it",
				  "Run dmesg to see why NVIDIA's module does not drive it.");
	if (excluded)
		return gpu_refuse(
			adapter, "the driver was told to leave it alone (NVreg_ExcludedGpus)",
			"Take the GPU out of NVreg_ExcludedGpus in /etc/modprobe.d, and load the module again.");
	return gpu_check_node(&probe->module, adapter);
}

/* Only the length of the domain differs between addresses, from four digits on; all digits have one case. */
static int gpu_compare_addresses(const void *a, const void *b)
{
	const char *x = *(char *const *)a, *y = *(char *const *)b;
	size_t x_length = strlen(x), y_length = strlen(y);

	return x_length != y_length ? (x_length < y_length ? -1 : 1) : strcmp(x, y);
}

int gpus_read(struct nvidia_probe *probe, const struct backend *backend, struct inventory *inventory, struct err *err)
{
	struct strv *gpus = &probe->gpus;
	int r;

	r = fd_list_names(AT_FDCWD, PATH_PROC_NVIDIA "/gpus", pci_address_is_name, GPUS_MAX, gpus);
	if (r == -ENOENT)
		r = 0;
	if (gpus->count > 1)
		qsort(gpus->items, gpus->count, sizeof(*gpus->items), gpu_compare_addresses);
	for (size_t i = 0; i < gpus->count && r == 0; i++) {
		struct adapter adapter = {.backend = backend, .index = -1, .minor = -1};
		size_t position = inventory->count;

		r = gpu_describe(probe, gpus->items[i], &adapter);
		if (r < 0)
			adapter_clear(&adapter);
		else
			r = inventory_take(inventory, &adapter);
		if (r == 0 && !inventory->adapters[position].unusable)
			r = mig_read_parts(inventory, position, &probe->parts);
	}
	return r < 0 ? err_set(err, r, "cannot read " PATH_PROC_NVIDIA "/gpus: %m") : 0;
}
