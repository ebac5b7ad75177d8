/* SPDX-License-Identifier: Apache-2.0 */

/* What `ctr-gpu doctor` asks of a native NVIDIA host. */

#include "model/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/paths.h"
#include "ldcache/ldcache.h"
#include "nvidia/internal.h"
#include "nvidia/nvidia.h"
#include "system/machine.h"
#include "system/trusted_file.h"

enum { MODE_FOR_ALL = 0666, NAMES_MAX = 3 };

/* A module that is loaded shows itself where the nodes are missing. */
static bool check_is_nvidia_here(void)
{
	return file_is_device(backend_nvidia.device) || file_exists(PATH_PROC_NVIDIA "/version");
}

static const char *check_describe_nvidia(const char **ret_id)
{
	*ret_id = "host.native";
	return "NVIDIA's driver on this machine";
}

static const char *check_advise_no_nvidia(void)
{
	return "Look at dmesg for what NVIDIA's module says; in a virtual machine, pass a GPU through to it.";
}

static void check_explain_no_nvidia(struct findings *findings)
{
	struct pci_function gpu;

	if (!pci_find("/sys", module_is_gpu, &gpu))
		return;
	findings_add(findings, "host.no-driver", SEVERITY_PROBLEM,
		     "an NVIDIA GPU (PCI %s) is here, and NVIDIA's kernel module does not drive it%s%s\n"
		     "%s",
		     gpu.address, gpu.driver[0] ? ": its driver is " : "", gpu.driver,
		     streq(gpu.driver, "nouveau") ? "Install NVIDIA's driver, which takes nouveau's place, and restart."
		     : streq(gpu.driver, "vfio-pci")
			     ? "The GPU is set aside for a virtual machine: containers there can have it, or unbind it "
			       "from vfio-pci."
			     : "sudo ctr-gpu load; if that fails, install NVIDIA's driver.");
}

/* ---- device nodes ---- */

/* Nodes of capabilities are for root, and for programs that manage parts of GPUs. */
static bool check_is_for_all(const struct load_step *step)
{
	return step->kind == LOAD_NODE && (step->mode & MODE_FOR_ALL) == MODE_FOR_ALL;
}

/* "module nvidia-uvm, /dev/nvidia0, …". Return: how many are missing. */
static size_t check_list_missing(const struct load *load, char *names, size_t size, bool *ret_module)
{
	size_t missing = 0, length = 0;

	for (size_t i = 0; i < load->count; i++) {
		const struct load_step *step = &load->steps[i];
		bool module = step->kind == LOAD_MODULE;

		if (step->state != LOAD_MISSING || (!module && !check_is_for_all(step)))
			continue;
		*ret_module |= module;
		if (missing++ > NAMES_MAX || length >= size)
			continue;
		length += (size_t)snprintf(names + length, size - length, "%s%s%s", missing > 1 ? ", " : "",
					   missing <= NAMES_MAX && module ? "module " : "",
					   missing <= NAMES_MAX ? step->name : "…");
	}
	return missing;
}

static const char *check_find_closed(const struct load *load)
{
	for (size_t i = 0; i < load->count; i++)
		if (check_is_for_all(&load->steps[i]) && !file_may_open(load->steps[i].name))
			return load->steps[i].name;
	return NULL;
}

static size_t check_count_nodes(const struct load *load)
{
	size_t count = 0;

	for (size_t i = 0; i < load->count; i++)
		count += load->steps[i].kind == LOAD_NODE && load->steps[i].state == LOAD_THERE;
	return count;
}

static void check_add_nodes(const struct load *load, struct findings *findings)
{
	bool lacks_module = false;
	const char *closed;
	char names[256];

	/* Without the module for unified memory CUDA does not start; what else is missing, only some programs need. */
	if (check_list_missing(load, names, sizeof(names), &lacks_module) > 0)
		findings_add(findings, "device.missing", lacks_module ? SEVERITY_PROBLEM : SEVERITY_WARNING,
			     "not there yet: %s\n"
			     "sudo ctr-gpu load",
			     names);
	else if ((closed = check_find_closed(load)))
		findings_add(findings, "device.permission", SEVERITY_PROBLEM,
			     "you may not open %s\n"
			     "Give %s the mode that the driver asks for: sudo chmod 0666 %s, or join the group that "
			     "owns it.",
			     closed, closed, closed);
	else
		findings_add(findings, "device.nvidia", SEVERITY_OK, "NVIDIA's modules and %zu device nodes are there",
			     check_count_nodes(load));
}

static void check_nodes(struct doctor_context *examination)
{
	const struct load_options options = {.driver_root = examination->settings->driver_root};
	_cleanup_load_ struct load load = {0};
	struct err err = {0};

	if (loader_nvidia.decide(&options, &load, &err) == 0)
		check_add_nodes(&load, &examination->findings);
	else
		findings_add_error(&examination->findings, "device.wrong", SEVERITY_PROBLEM, &err);
}

/* nvidia-smi then says "Driver/library version mismatch". libcuda's version is looked at when the plan is made. */
static void check_nvml(struct doctor_context *examination)
{
	_cleanup_free_ char *text = file_text(PATH_PROC_NVIDIA "/version"), *version = NULL, *path = NULL, *real = NULL;
	const char *suffix;

	if (examination->planned && text && ldcache_find_here("libnvidia-ml.so.1", &path) == 0 && path)
		real = realpath(path, NULL);
	if (!real || proc_driver_version(text, &version) < 0)
		return;
	suffix = strstr(strrchr(real, '/'), ".so.");
	if (!suffix || !proc_is_version(suffix + strlen(".so.")) || streq(suffix + strlen(".so."), version))
		return;
	findings_add(&examination->findings, "driver.mismatch", SEVERITY_WARNING,
		     "%s is not of the kernel module's version %s\n"
		     "Finish the driver's update: restart the machine, or reload the module (rmmod nvidia-uvm nvidia).",
		     real, version);
}

static const struct check checks[] = {
	{CHECK_DEVICES, "the device nodes", check_nodes},
	{CHECK_DRIVER, "the driver", check_nvml},
	{0},
};

const struct backend_checks checks_nvidia = {
	.backend = &backend_nvidia,
	.driver = "NVIDIA driver",
	.advise_no_adapter = check_advise_no_nvidia,
	.is_here = check_is_nvidia_here,
	.describe = check_describe_nvidia,
	.explain = check_explain_no_nvidia,
	.checks = checks,
};
