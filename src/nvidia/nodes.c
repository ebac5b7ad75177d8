/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The device nodes of a container. A GPU that was not selected has no node and no device rule, so it cannot be opened
 * even where a process makes the node itself.
 */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/fd.h"
#include "base/paths.h"
#include "nvidia/internal.h"

enum { SCREEN = CAPABILITY_GRAPHICS | CAPABILITY_DISPLAY, DRI_NODES_MAX = 64 };

/* Nodes that belong to the driver and not to one GPU. */
static const struct {
	const char *path, *driver;
	unsigned node_minor;
	uint32_t capabilities; /* any of them */
	const char *reason;
	const char *remedy; /* how to make a missing one; NULL: nothing depends on it */
} control_nodes[] = {
	{PATH_NVIDIACTL, "nvidia", MINOR_CONTROL, CAPABILITY_ALL, "the driver's control device", "ctr-gpu load"},
	{PATH_NVIDIA_UVM, "nvidia-uvm", MINOR_UVM, CAPABILITY_COMPUTE | CAPABILITY_VIDEO | CAPABILITY_NGX,
	 "unified memory, without which CUDA does not start", "ctr-gpu load"},
	{PATH_NVIDIA_UVM_TOOLS, "nvidia-uvm", MINOR_UVM_TOOLS, CAPABILITY_COMPUTE,
	 "unified memory, for debuggers and profilers", NULL},
	{PATH_NVIDIA_MODESET, "nvidia", MINOR_MODESET, SCREEN, "display modes", "ctr-gpu load --modeset"},
};

static int nodes_add_node(const struct nvidia_plan *nvidia_plan, const char *path, const char *driver,
			  unsigned node_minor, const char *reason)
{
	struct plan_device device = {.access = "rw"};
	struct stat st;
	int r;

	r = module_node(nvidia_plan->module, path, driver, node_minor, &st);
	if (r < 0)
		return r;
	device.number = st.st_rdev;
	device.group = plan_device_group(&st);
	device.path = strdup(path);
	device.reason = strdup(reason);
	return plan_add_device(nvidia_plan->plan, &device);
}

static int nodes_add_control(const struct nvidia_plan *nvidia_plan)
{
	for (size_t i = 0; i < ARRAY_SIZE(control_nodes); i++) {
		const char *path = control_nodes[i].path, *remedy = control_nodes[i].remedy;
		int r;

		if (!(control_nodes[i].capabilities & nvidia_plan->capabilities))
			continue;
		r = nodes_add_node(nvidia_plan, path, control_nodes[i].driver, control_nodes[i].node_minor,
				   control_nodes[i].reason);
		if (r == -ENOMEM)
			return r;
		if (r < 0 && remedy &&
		    strv_format(&nvidia_plan->plan->warnings, "%s is %s: %s. This makes it: %s", path,
				r == -ENOENT ? "missing" : "another device", control_nodes[i].reason, remedy) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int nodes_refuse(const struct nvidia_plan *nvidia_plan, const char *path, int r)
{
	return err_set_advised(nvidia_plan->err, r, ("cannot use %s: %m", path),
			       ("Look at it with ls -l, and at /proc/devices."));
}

/* ---- /dev/dri ---- */

static int nodes_add_dri_link(const struct nvidia_plan *nvidia_plan, const char *address, const char *name)
{
	struct plan_symlink link = {.reason = strdup("the same by PCI address")};
	const char *kind = str_has_prefix(name, "card") ? "card" : "render";

	(void)str_format(&link.path, PATH_DRI "/by-path/pci-%s-%s", address, kind);
	(void)str_format(&link.points_to, "../%s", name);
	return plan_add_symlink(nvidia_plan->plan, &link);
}

static int nodes_add_dri_node(const struct nvidia_plan *nvidia_plan, const char *address, const char *name)
{
	_cleanup_free_ char *path = NULL;
	int r;

	if (str_format(&path, PATH_DRI "/%s", name) < 0)
		return -ENOMEM;
	r = nodes_add_node(nvidia_plan, path, "drm", (unsigned)adapter_dri_minor(name), "direct rendering");
	/* A machine without nvidia-drm has no such nodes, and can render. */
	if (r < 0)
		return r == -ENOMEM ? r : 0;
	return nodes_add_dri_link(nvidia_plan, address, name);
}

/* These nodes are for the whole GPU: a container that was given a part of it (MIG) gets none. */
static int nodes_add_dri(const struct nvidia_plan *nvidia_plan, const struct adapter *adapter)
{
	_cleanup_strv_ struct strv names = {0};
	_cleanup_free_ char *path = NULL;
	int r;

	if (!adapter->pci_address || adapter->is_part || !(nvidia_plan->capabilities & SCREEN))
		return 0;
	if (str_format(&path, "/sys/bus/pci/devices/%s/drm", adapter->pci_address) < 0)
		return -ENOMEM;
	r = fd_list_names(AT_FDCWD, path, adapter_is_dri_name, DRI_NODES_MAX, &names);
	if (r < 0)
		return r == -ENOMEM ? r : 0;
	for (size_t i = 0; i < names.count && r == 0; i++)
		r = nodes_add_dri_node(nvidia_plan, adapter->pci_address, names.items[i]);
	return r;
}

/* ---- GPUs ---- */

static int nodes_add_gpu(const struct nvidia_plan *nvidia_plan, const struct adapter *adapter)
{
	_cleanup_free_ char *path = NULL, *reason = NULL, *name = NULL;
	int r;

	if (adapter_describe(adapter, &name) < 0 || str_format(&path, PATH_NVIDIA_GPU "%d", adapter->minor) < 0 ||
	    str_format(&reason, "GPU %s", name) < 0)
		return -ENOMEM;
	r = nodes_add_node(nvidia_plan, path, "nvidia", (unsigned)adapter->minor, reason);
	if (r == -ENOMEM)
		return r;
	if (r < 0)
		return nodes_refuse(nvidia_plan, path, r);
	r = mig_plan(nvidia_plan->module, &nvidia_plan->seen->parts, adapter, nvidia_plan->plan, nvidia_plan->err);
	return r != 0 ? r : nodes_add_dri(nvidia_plan, adapter);
}

/* ---- what is asked for by name ---- */

static int nodes_add_imex_channel(const struct nvidia_plan *nvidia_plan, const char *channel)
{
	_cleanup_free_ char *path = NULL;
	int r;

	if (strspn(channel, "0123456789") != strlen(channel) || strlen(channel) > 7)
		return err_set_advised(
			nvidia_plan->err, CTR_GPU_E_UNKNOWN_DEVICE,
			("an IMEX channel is a number, not \"%.32s\"", channel),
			("NVIDIA_IMEX_CHANNELS and --imex-channel take a list such as 0,1, all, or none."));
	if (str_format(&path, PATH_NVIDIA_IMEX "/channel%s", channel) < 0)
		return -ENOMEM;
	r = nodes_add_node(nvidia_plan, path, "nvidia-caps-imex-channels", (unsigned)strtoul(channel, NULL, 10),
			   "memory shared with other machines (IMEX)");
	if (r == 0 || r == -ENOMEM)
		return r;
	return err_set_advised(
		nvidia_plan->err, CTR_GPU_E_UNKNOWN_DEVICE, ("IMEX channel %s has no node %s", channel, path),
		("ctr-gpu load --imex-channel=%s makes it, on machines that have the IMEX service.", channel));
}

static int nodes_compare_channels(const struct dirent **a, const struct dirent **b)
{
	return strverscmp((*a)->d_name, (*b)->d_name);
}

/* Those whose nodes an administrator has made. */
static int nodes_add_imex_channels(const struct nvidia_plan *nvidia_plan)
{
	static const char prefix[] = "channel";
	struct dirent **entries;
	int count, found = 0, r = 0;

	count = scandir(PATH_NVIDIA_IMEX, &entries, NULL, nodes_compare_channels);
	for (int i = 0; i < count; i++) {
		if (r == 0 && str_has_prefix(entries[i]->d_name, prefix)) {
			r = nodes_add_imex_channel(nvidia_plan, entries[i]->d_name + strlen(prefix));
			found++;
		}
		free(entries[i]);
	}
	if (count >= 0)
		free(entries);
	if (r == 0 && found == 0)
		r = strv_format(&nvidia_plan->plan->warnings,
				"all IMEX channels are asked for, and this machine has none in " PATH_NVIDIA_IMEX);
	return r;
}

static int nodes_add_imex(const struct nvidia_plan *nvidia_plan, const struct strv *channels)
{
	int r = 0;

	if (strv_contains(channels, "all"))
		return nodes_add_imex_channels(nvidia_plan);
	for (size_t i = 0; i < channels->count && r == 0; i++)
		r = nodes_add_imex_channel(nvidia_plan, channels->items[i]);
	return r;
}

/* The switches that connect the GPUs of one machine, for a fabric manager in a container. */
static int nodes_add_nvswitches(const struct nvidia_plan *nvidia_plan)
{
	static const char reason[] = "NVSwitch";
	int r;

	r = nodes_add_node(nvidia_plan, PATH_NVIDIA_NVSWITCHCTL, "nvidia-nvswitch", MINOR_NVSWITCHCTL, reason);
	if (r < 0)
		return r == -ENOMEM
			       ? r
			       : strv_format(&nvidia_plan->plan->warnings,
					     "NVSwitch is asked for, and this machine has no /dev/nvidia-nvswitchctl");
	for (unsigned i = 0; r == 0; i++) {
		_cleanup_free_ char *path = NULL;

		if (str_format(&path, PATH_NVIDIA_NVSWITCH "%u", i) < 0)
			return -ENOMEM;
		r = nodes_add_node(nvidia_plan, path, "nvidia-nvswitch", i, reason);
	}
	return r == -ENOMEM ? r : 0;
}

/* A container with parts of GPUs must not get rights over the whole GPUs. */
static bool nodes_has_parts_only(const struct nvidia_plan *nvidia_plan, const struct request *request)
{
	for (size_t i = 0; request->kind != REQUEST_ALL && i < nvidia_plan->selected_count; i++)
		if (nvidia_plan->selected[i]->is_part)
			return true;
	return false;
}

static int nodes_add_mig_rights(const struct nvidia_plan *nvidia_plan, const struct request *request)
{
	int r = 0;

	if ((request->mig_config || request->mig_monitor) && nodes_has_parts_only(nvidia_plan, request))
		return err_set_advised(nvidia_plan->err, CTR_GPU_E_BAD_ARGUMENT,
				       ("rights over parts of GPUs (MIG) go with whole GPUs, and parts are asked for"),
				       ("Ask for all devices, or for GPUs by their index or UUID."));

	if (request->mig_config)
		r = mig_plan_capability(nvidia_plan->module, "mig/config", "MIG: to make and remove parts of GPUs",
					nvidia_plan->plan, nvidia_plan->err);
	if (r == 0 && request->mig_monitor)
		r = mig_plan_capability(nvidia_plan->module, "mig/monitor", "MIG: to see everybody's parts of GPUs",
					nvidia_plan->plan, nvidia_plan->err);
	return r;
}

int plan_nodes(const struct nvidia_plan *nvidia_plan, const struct request *request)
{
	int r = 0;

	/* "none": the libraries alone. They report the missing device themselves. */
	if (nvidia_plan->selected_count > 0)
		r = nodes_add_control(nvidia_plan);
	for (size_t i = 0; i < nvidia_plan->selected_count && r == 0; i++)
		r = nodes_add_gpu(nvidia_plan, nvidia_plan->selected[i]);
	if (r == 0)
		r = nodes_add_imex(nvidia_plan, &request->imex_channels);
	if (r == 0 && request->nvswitches)
		r = nodes_add_nvswitches(nvidia_plan);
	if (r == 0)
		r = nodes_add_mig_rights(nvidia_plan, request);
	return r;
}
