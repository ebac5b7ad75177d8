/* SPDX-License-Identifier: Apache-2.0 */

/* What kind of host this is, and why it has no GPU if it has none. */

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/utsname.h>

#include "base/fd.h"
#include "cli/doctor/doctor.h"
#include "cli/doctor/file.h"
#include "cli/doctor/pci.h"
#include "dxg/ioctl.h"
#include "nvidia/module.h"
#include "wsl/kind.h"
#include "wsl/paths.h"

/* ---- a host without a device ---- */

/* Whether /etc/wsl.conf turns the GPU off: "enabled = false" under "[gpu]". */
static bool machine_wsl_conf_disables(void)
{
	_cleanup_free_ char *text = file_text("/etc/wsl.conf");
	_cleanup_strv_ struct strv lines = {0};
	bool gpu = false;

	if (!text || strv_split(text, "\n", &lines) < 0)
		return false;
	for (size_t i = 0; i < lines.count; i++) {
		const char *line = lines.items[i] + strspn(lines.items[i], " \t"), *value = strchr(line, '=');

		if (line[0] == '[')
			gpu = strncasecmp(line, "[gpu]", strlen("[gpu]")) == 0;
		else if (gpu && value && strncasecmp(line, "enabled", strlen("enabled")) == 0)
			return strcasestr(value, "false") != NULL;
	}
	return false;
}

static void machine_add_wsl_without(struct findings *findings, enum wsl_kind kind)
{
	findings_add(findings, "host.no-device", SEVERITY_PROBLEM, "%s without " DXG_DEVICE,
		     kind == WSL_1 ? "WSL1" : "WSL2");
	if (kind == WSL_1)
		findings_advise(findings, "WSL1 has no GPU: run wsl --set-version DISTRIBUTION 2 in Windows.");
	else if (machine_wsl_conf_disables())
		findings_advise(findings, "/etc/wsl.conf turns it off: set enabled=true under [gpu], then run wsl "
					  "--shutdown in Windows.");
	else
		findings_advise(findings, "Run wsl --update in Windows, keep gpuSupport on in .wslconfig, then wsl "
					  "--shutdown; Windows 10 needs 21H2.");
}

static void machine_add_nvidia_without(struct findings *findings, const struct pci_gpus *gpus)
{
	findings_add(findings, "host.no-driver", SEVERITY_PROBLEM,
		     "%s is here, and NVIDIA's kernel module does not drive it%s%s", gpus->nvidia,
		     gpus->nvidia_driver[0] ? ": its driver is " : "", gpus->nvidia_driver);
	if (streq(gpus->nvidia_driver, "nouveau"))
		findings_advise(findings, "Install NVIDIA's driver, which takes nouveau's place, and restart.");
	else if (streq(gpus->nvidia_driver, "vfio-pci"))
		findings_advise(findings, "It is set aside for a virtual machine: containers there can have it, or "
					  "unbind it from vfio-pci.");
	else
		findings_advise(findings, "sudo ctr-gpu load; if that fails, install NVIDIA's driver.");
}

static void machine_add_without(struct findings *findings)
{
	enum wsl_kind kind = wsl_kind();
	struct pci_gpus gpus;

	pci_find_gpus(&gpus);
	if (kind != WSL_NONE) {
		machine_add_wsl_without(findings, kind);
	} else if (gpus.paravirtual[0]) {
		findings_add(
			findings, "host.no-device", SEVERITY_PROBLEM,
			"a Hyper-V guest with a GPU (PCI %s) without " DXG_DEVICE "\n"
			"sudo modprobe dxgkrnl; if that module is missing, build it for this kernel (dxgkrnl-dkms).",
			gpus.paravirtual);
	} else if (gpus.nvidia[0]) {
		machine_add_nvidia_without(findings, &gpus);
	} else if (gpus.other[0]) {
		findings_add(findings, "host.other-vendor", SEVERITY_PROBLEM,
			     "%s is this machine's GPU; outside Windows hosts ctr-gpu serves NVIDIA's\n"
			     "Give containers its nodes: docker run --device /dev/dri (AMD: and --device /dev/kfd).",
			     gpus.other);
	} else {
		findings_add(findings, "host.no-gpu", SEVERITY_PROBLEM,
			     "no GPU here: no " DXG_DEVICE ", no /dev/nvidiactl, none on the PCI bus\n"
			     "If this is a virtual machine, assign a GPU to it (Hyper-V: Add-VMGpuPartitionAdapter, or "
			     "DDA).");
	}
}

/* ---- a host with one ---- */

static void machine_add_kind(const struct examination *examination, struct findings *findings)
{
	struct utsname name = {0};
	const char *kind = examination->wsl ? "WSL2" : "Hyper-V guest";

	(void)uname(&name);
	if (examination->gpu_pv && examination->native)
		findings_add(findings, "host.both", SEVERITY_OK,
			     "%s with GPUs behind " DXG_DEVICE " and GPUs of its own, Linux %s", kind, name.release);
	else if (examination->gpu_pv)
		findings_add(findings, examination->wsl ? "host.wsl" : "host.hyper-v", SEVERITY_OK,
			     "%s, GPUs behind " DXG_DEVICE ", Linux %s", kind, name.release);
	else
		findings_add(findings, "host.native", SEVERITY_OK, "NVIDIA's driver on this machine, Linux %s",
			     name.release);
}

/* WSL keeps the device then, and shares no driver: what is said of stores and libraries is only what follows. */
static void machine_add_disabled(struct findings *findings)
{
	bool gone = !file_exists(WSL_LIB);

	findings_add(findings, "host.turned-off", gone ? SEVERITY_PROBLEM : SEVERITY_WARNING,
		     "/etc/wsl.conf turns the GPU off%s\n"
		     "Set enabled=true under [gpu] in /etc/wsl.conf, then run wsl --shutdown in Windows.",
		     gone ? ", so " WSL_LIB " is missing" : ", from the next start on");
}

/* Which program made the container that this is; NULL if it is none. To systemd, WSL is one. */
static const char *machine_container_manager(char *buffer, size_t size)
{
	_cleanup_free_ char *manager = file_text("/run/systemd/container");

	if (manager && !str_has_prefix(manager, "wsl")) {
		(void)snprintf(buffer, size, "%.*s", (int)strcspn(manager, "\n"), manager);
		return buffer;
	}
	if (file_exists("/.dockerenv"))
		return "docker";
	return file_exists("/run/.containerenv") ? "podman" : NULL;
}

static void machine_add_container(struct findings *findings)
{
	char buffer[32];
	const char *manager = machine_container_manager(buffer, sizeof(buffer));

	if (!manager)
		return;
	findings_add(findings, "host.container", SEVERITY_NOTE,
		     "this is the inside of a container (%s): what it got was decided at its creation\n"
		     "Run ctr-gpu doctor on its host.",
		     manager);
}

void check_machine(struct examination *examination)
{
	bool disabled;

	examination->gpu_pv = file_is_device(DXG_DEVICE);
	examination->native = file_is_device("/dev/nvidiactl") || file_exists(NVIDIA_PROC "/version");
	/* Without the mounts of its driver, a kernel of the user's own does not tell. */
	disabled = examination->gpu_pv && machine_wsl_conf_disables();
	examination->wsl = disabled || wsl_kind() != WSL_NONE;
	if (examination->gpu_pv || examination->native)
		machine_add_kind(examination, &examination->findings);
	else
		machine_add_without(&examination->findings);
	if (disabled)
		machine_add_disabled(&examination->findings);
	machine_add_container(&examination->findings);
}
