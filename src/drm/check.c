/* SPDX-License-Identifier: Apache-2.0 */

/* What `ctr-gpu doctor` asks of a host with AMD's or Intel's GPUs. */

#include "model/check.h"

#include <stdio.h>

#include "base/paths.h"
#include "drm/internal.h"
#include "system/machine.h"
#include "system/trusted_file.h"

static bool check_is_drm_here(void)
{
	struct inventory inventory = {0};
	bool here = cards_read(&backend_drm, &inventory) == 0 && inventory.count > 0;

	inventory_clear(&inventory);
	return here;
}

static const char *check_describe_drm(const char **ret_id)
{
	*ret_id = "host.drm";
	return "drivers of the kernel's own for AMD's and Intel's GPUs";
}

static const char *check_advise_no_drm(void)
{
	return "Look at dmesg for what the GPU's driver says.";
}

static bool check_is_drm_gpu(const struct pci_function *function)
{
	return function->display && (function->vendor == PCI_VENDOR_AMD || function->vendor == PCI_VENDOR_INTEL);
}

static void check_explain_no_drm(struct findings *findings)
{
	struct pci_function gpu;

	if (!pci_find("/sys", check_is_drm_gpu, &gpu))
		return;
	findings_add(findings, "host.no-driver", SEVERITY_PROBLEM,
		     "an %s GPU (PCI %s) is here, and no driver offers it in /dev/dri%s%s\n"
		     "%s",
		     gpu.vendor == PCI_VENDOR_AMD ? "AMD" : "Intel", gpu.address,
		     gpu.driver[0] ? ": its driver is " : "", gpu.driver,
		     streq(gpu.driver, "vfio-pci")
			     ? "The GPU is set aside for a virtual machine: containers there can have it, or unbind it "
			       "from vfio-pci."
		     : gpu.vendor == PCI_VENDOR_AMD ? "sudo modprobe amdgpu; dmesg says why, if it fails."
						    : "sudo modprobe xe or i915; dmesg says why, if it fails.");
}

/* The nodes belong to a group. Root's daemons open them for any user, a user's own Podman does not. */
static void check_drm_nodes(struct doctor_context *examination)
{
	const struct inventory *inventory = examination->inventory;
	const char *closed = NULL;
	char path[64];

	for (size_t i = 0; inventory && i < inventory->count && !closed; i++) {
		const struct adapter *adapter = &inventory->adapters[i];
		const struct card_class *class = card_class(adapter);

		if (adapter->backend != &backend_drm || adapter->unusable)
			continue;
		(void)snprintf(path, sizeof(path), "%s/%s%d", class->dev, class->prefix, adapter->minor);
		closed = file_may_open(path) ? NULL : path;
	}
	if (closed) {
		findings_add(&examination->findings, "device.permission", SEVERITY_PROBLEM,
			     "you may not open %s, nor may rootless containers of yours\n"
			     "sudo usermod --append --groups render,video $USER, and log in again; rootless Podman: "
			     "also --group-add keep-groups.",
			     closed);
		findings_close(&examination->findings, "podman", ALL_METHODS);
	}
	if (file_exists("/sys/class/kfd/kfd") && !file_is_device(PATH_KFD))
		findings_add(&examination->findings, "device.kfd", SEVERITY_WARNING,
			     PATH_KFD " is missing: programs that compute with ROCm find no GPU\n"
				      "sudo udevadm trigger");
}

static const struct check checks[] = {
	{CHECK_ADAPTERS, "the device nodes", check_drm_nodes},
	{0},
};

const struct backend_checks checks_drm = {
	.backend = &backend_drm,
	.driver = "DRM",
	.advise_no_adapter = check_advise_no_drm,
	.is_here = check_is_drm_here,
	.describe = check_describe_drm,
	.explain = check_explain_no_drm,
	.checks = checks,
};
