/* SPDX-License-Identifier: Apache-2.0 */

/* The nodes in /dev: whether they are there, are what they seem, and may be opened by whoever asks. */

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/doctor/doctor.h"
#include "cli/doctor/file.h"
#include "dxg/ioctl.h"
#include "lib/context.h"
#include "lib/loaders.h"
#include "wsl/paths.h"

enum { MODE_FOR_ALL = 0666, NAMES_MAX = 3 };

static void devices_check_dxg(struct findings *findings)
{
	struct stat st;

	if (!file_may_open(DXG_DEVICE)) {
		findings_add(findings, "device.permission", SEVERITY_PROBLEM,
			     "you may not open " DXG_DEVICE "\n"
			     "sudo chmod 0666 " DXG_DEVICE
			     "; the kernel makes it so, look for a udev rule that changes it.");
	} else if (stat(DXG_DEVICE, &st) == 0 && (st.st_mode & MODE_FOR_ALL) != MODE_FOR_ALL) {
		findings_add(findings, "device.permission", SEVERITY_WARNING,
			     DXG_DEVICE " has mode %04o: users other than root cannot open it, in containers too\n"
					"sudo chmod 0666 " DXG_DEVICE,
			     (unsigned)st.st_mode & 07777);
	} else {
		findings_add(findings, "device.dxg", SEVERITY_OK, DXG_DEVICE " may be opened");
	}
}

/* Nodes of capabilities are for root, and for programs that manage parts of GPUs. */
static bool devices_is_for_all(const struct load_step *step)
{
	return step->kind == LOAD_NODE && (step->mode & MODE_FOR_ALL) == MODE_FOR_ALL;
}

/* "module nvidia-uvm, /dev/nvidia0, …": what is not there, the first few of it. */
static size_t devices_list_missing(const struct load *load, char *text, size_t size)
{
	size_t missing = 0, length = 0;

	text[0] = '\0';
	for (size_t i = 0; i < load->count; i++) {
		const struct load_step *step = &load->steps[i];

		if (step->state != LOAD_MISSING || (step->kind != LOAD_MODULE && !devices_is_for_all(step)))
			continue;
		if (missing++ < NAMES_MAX && length < size)
			length += (size_t)snprintf(text + length, size - length, "%s%s%s", missing > 1 ? ", " : "",
						   step->kind == LOAD_MODULE ? "module " : "", step->name);
	}
	if (missing > NAMES_MAX && length < size)
		(void)snprintf(text + length, size - length, ", …");
	return missing;
}

/* Without the module for unified memory CUDA does not start; what else is missing, only some programs need. */
static bool devices_lack_module(const struct load *load)
{
	for (size_t i = 0; i < load->count; i++)
		if (load->steps[i].state == LOAD_MISSING && load->steps[i].kind == LOAD_MODULE)
			return true;
	return false;
}

static void devices_add_nodes(const struct load *load, struct findings *findings)
{
	char names[256];
	const char *closed = NULL;
	size_t nodes = 0;

	if (devices_list_missing(load, names, sizeof(names)) > 0) {
		findings_add(findings, "device.missing",
			     devices_lack_module(load) ? SEVERITY_PROBLEM : SEVERITY_WARNING,
			     "not there yet: %s\n"
			     "sudo ctr-gpu load",
			     names);
		return;
	}
	for (size_t i = 0; i < load->count; i++) {
		const struct load_step *step = &load->steps[i];

		nodes += step->kind == LOAD_NODE && step->state == LOAD_THERE;
		if (!closed && devices_is_for_all(step) && !file_may_open(step->name))
			closed = step->name;
	}
	if (closed) {
		findings_add(findings, "device.permission", SEVERITY_PROBLEM,
			     "you may not open %s\n"
			     "Give it the mode that the driver asks for: sudo chmod 0666 %s, or join the group that "
			     "owns it.",
			     closed, closed);
	} else {
		findings_add(findings, "device.nvidia", SEVERITY_OK, "NVIDIA's modules and %zu device nodes are there",
			     nodes);
	}
}

static void devices_check_nvidia(struct examination *examination)
{
	const struct load_options options = {.driver_root = examination->context->settings.driver_root};
	_cleanup_load_ struct load load = {0};
	struct err err = {0};

	if (loaders_decide(&options, &load, &err) == 0)
		devices_add_nodes(&load, &examination->findings);
	else
		findings_add_message(&examination->findings, "device.wrong", SEVERITY_PROBLEM, err.text);
}

void check_devices(struct examination *examination)
{
	if (examination->gpu_pv)
		devices_check_dxg(&examination->findings);
	if (examination->native)
		devices_check_nvidia(examination);
}
