/* SPDX-License-Identifier: Apache-2.0 */

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/fd.h"
#include "base/paths.h"
#include "drm/internal.h"

enum { SCREEN = CAPABILITY_GRAPHICS | CAPABILITY_DISPLAY, NAMES_MAX = 64 };

static int drm_probe(const struct settings *settings, struct inventory *inventory, void **ret_seen, struct err *err)
{
	size_t before = inventory->count;
	int r = cards_read(&backend_drm, inventory);

	(void)settings, (void)ret_seen;
	if (r < 0)
		return err_set(err, r, "%m");
	return inventory->count > before ? 0 : CTR_GPU_E_NO_DEVICE;
}

/* ---- the plan ---- */

/* Return: 0; -ENOENT, -ENODEV or -ENOMEM. */
static int drm_add_node(const struct card_class *class, const char *name, const char *reason, struct plan *plan)
{
	struct plan_device device = {.access = "rw"};
	struct stat st;
	int r = card_node(class, name, &device.path, &st);

	if (r < 0) {
		free(device.path);
		return r;
	}
	device.number = st.st_rdev;
	device.group = plan_device_group(&st);
	device.reason = strdup(reason);
	return plan_add_device(plan, &device);
}

/* udev's, by which programs tell GPUs apart; a partition has no address of its own, and its GPU's may be unknown. */
static int drm_add_link(const struct adapter *adapter, const char *name, struct plan *plan)
{
	struct plan_symlink link = {0};

	if (!adapter->pci_address)
		return 0;
	link.reason = strdup("the same by PCI address");
	(void)str_format(&link.path, PATH_DRI "/by-path/pci-%s-%s", adapter->pci_address,
			 str_has_prefix(name, card_screen.prefix) ? "card" : "render");
	(void)str_format(&link.points_to, "../%s", name);
	return plan_add_symlink(plan, &link);
}

static bool drm_is_screen(const char *name)
{
	return str_has_prefix(name, card_screen.prefix);
}

/* The nodes for screens; computing, rendering and decoding need none. */
static int drm_add_screen(const struct adapter *adapter, const char *reason, struct plan *plan)
{
	_cleanup_strv_ struct strv names = {0};
	_cleanup_free_ char *path = NULL;
	int r;

	if (str_format(&path, "/sys/class/drm/renderD%d/device/drm", adapter->minor) < 0)
		return -ENOMEM;
	r = fd_list_names(AT_FDCWD, path, drm_is_screen, NAMES_MAX, &names);
	for (size_t i = 0; i < names.count && r != -ENOMEM; i++) {
		r = drm_add_node(&card_screen, names.items[i], reason, plan);
		if (r == 0)
			r = drm_add_link(adapter, names.items[i], plan);
	}
	return r == -ENOMEM ? r : 0;
}

/* One for all GPUs; the driver lets a process use those whose render node it may open (kfd_priv.h). */
static int drm_add_compute(struct plan *plan)
{
	int r = drm_add_node(&card_compute, "kfd", "AMD's compute driver, for ROCm", plan);

	if (r == 0 || r == -ENOMEM)
		return r;
	return strv_format(&plan->warnings,
			   PATH_KFD " is %s: programs that compute with ROCm find no GPU. This makes it: modprobe "
				    "amdgpu",
			   r == -ENOENT ? "missing" : "another device than the kernel lists");
}

static int drm_add_adapter(const struct adapter *adapter, uint32_t capabilities, struct plan *plan, struct err *err)
{
	_cleanup_free_ char *name = NULL, *node = NULL, *reason = NULL;
	const struct card_class *class = card_class(adapter);
	int r;

	if (adapter_describe(adapter, &name) < 0 || str_format(&node, "%s%d", class->prefix, adapter->minor) < 0 ||
	    str_format(&reason, "GPU %s", name) < 0)
		return -ENOMEM;
	r = drm_add_node(class, node, reason, plan);
	if (r < 0 && r != -ENOMEM)
		return err_set_advised(err, r, ("cannot use %s/%s: %m", class->dev, node), ("Look at it with ls -l."));
	if (r < 0 || adapter->is_npu)
		return r;
	if (!adapter->partitions)
		r = drm_add_link(adapter, node, plan);
	if (r == 0 && (capabilities & SCREEN))
		r = drm_add_screen(adapter, reason, plan);
	if (r == 0 && adapter->vendor_id == PCI_VENDOR_AMD && (capabilities & CAPABILITY_COMPUTE))
		r = drm_add_compute(plan);
	return r;
}

static int drm_plan(const struct settings *settings, void *seen, const struct request *request,
		    const struct adapter *const *selected, size_t count, struct plan *plan, struct err *err)
{
	int r = 0;

	(void)settings, (void)seen;
	for (size_t i = 0; i < count && r == 0; i++)
		r = drm_add_adapter(selected[i], request->capabilities, plan, err);
	return r == -ENOMEM ? err_set(err, r, "%m") : r;
}

/* ---- the inventory ---- */

static int drm_describe(const struct adapter *adapter, struct strv *ret)
{
	const struct card_class *class = card_class(adapter);
	int r = strv_add(ret, "node");

	if (r == 0)
		r = strv_format(ret, "%s/%s%d", class->dev, class->prefix, adapter->minor);
	if (r == 0 && adapter->partitions)
		r = strv_add(ret, "partition");
	if (r == 0 && adapter->partitions)
		r = strv_format(ret, "one of %zu of its GPU", adapter->partitions);
	return r;
}

const struct backend backend_drm = {
	.name = "drm",
	.device = PATH_DRI "/renderD128",
	.advice = "AMD, Intel: install the firmware.",
	.probe = drm_probe,
	.plan = drm_plan,
	.describe = drm_describe,
};

static int drm_load_decide(const struct load_options *options, struct load *ret, struct err *err)
{
	struct inventory inventory = {0};
	int r = cards_read(&backend_drm, &inventory);
	size_t count = inventory.count;

	(void)options;
	inventory_clear(&inventory);
	if (r < 0)
		return err_set(err, r, "%m");
	/* What is said of the NVIDIA GPU that is missing stays. */
	if (count == 0)
		return CTR_GPU_E_NO_DEVICE;
	return strv_format(&ret->remarks, "nothing to load for AMD's and Intel's GPUs: udev loads their drivers");
}

const struct backend_load loader_drm = {.decide = drm_load_decide};
