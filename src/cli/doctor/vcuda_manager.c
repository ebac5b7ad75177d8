/* SPDX-License-Identifier: Apache-2.0 */

/* Whether containers would get GPUs by vCUDA, if the configuration allows it. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "vcuda_rpc.h"

#include "base/landlock.h"
#include "cli/doctor/doctor.h"
#include "system/trusted_file.h"
#include "vcuda/grant/backend.h"
#include "vcuda/protocol/control.h"

static void vcuda_check_client(struct findings *findings, enum severity severity)
{
	_cleanup_free_ char *client = vcuda_find_client("libcuda.so.1");

	if (!client)
		findings_add(findings, "vcuda.no-client", severity,
			     "vCUDA's client library, which containers get, is missing\n"
			     "Install the package ctr-gpu-vcuda.");
}

static void vcuda_check_host_memory(const char *unlimited, struct findings *findings)
{
	if (*unlimited)
		findings_add(findings, "vcuda.host-memory", SEVERITY_NOTE,
			     "a container's vCUDA servers have no limit of the host's memory: %s\n"
			     "A host that systemd starts with cgroup version 2 has one (ctr-gpu-vcudad(8)).",
			     unlimited);
	else
		findings_add(findings, "vcuda.host-memory", SEVERITY_OK,
			     "a container's vCUDA servers have a limit of the host's memory");
}

static void vcuda_check_gpu(const struct vcudad_trouble *trouble, struct findings *findings)
{
	if (trouble->lost)
		findings_add(findings, "vcuda.lost-gpu", SEVERITY_WARNING,
			     "%s is lost (%s), and no container gets it by vCUDA\n"
			     "Reset the GPU (nvidia-smi -r) or start the host again, then: sudo ctr-gpu vcuda clear %s",
			     trouble->uuid, trouble->why, trouble->uuid);
	else
		findings_add(findings, "vcuda.suspected-gpu", SEVERITY_WARNING,
			     "%s may be lost (%s), and new containers get other GPUs first\n"
			     "If the GPU is well: sudo ctr-gpu vcuda clear %s",
			     trouble->uuid, trouble->why, trouble->uuid);
}

/* Only a manager that runs can tell. */
static void vcuda_check_list(int fd, struct findings *findings)
{
	struct vcudad_grants list = {0};
	char nothing = '\0';

	if (control_ask(fd, VCUDAD_LIST, &nothing, &list) == 0) {
		vcuda_check_host_memory(list.unlimited, findings);
		for (u_int i = 0; i < list.troubles.troubles_len; i++)
			vcuda_check_gpu(&list.troubles.troubles_val[i], findings);
	}
	control_free_reply(VCUDAD_LIST, &list);
}

/* Its socket is root's. */
static void vcuda_check_manager(struct findings *findings, enum severity severity)
{
	_cleanup_close_ int fd = -1;
	int r = control_open(&fd);

	if (r == 0) {
		findings_add(findings, "vcuda.manager", SEVERITY_OK, "vCUDA's manager ctr-gpu-vcudad runs");
		vcuda_check_list(fd, findings);
	} else if (r == -ENOENT || r == -ECONNREFUSED)
		findings_add(findings, "vcuda.no-manager", severity,
			     "vCUDA's manager ctr-gpu-vcudad does not run\nsudo systemctl enable --now ctr-gpu-vcudad");
	else
		findings_add(findings, "vcuda.unknown", SEVERITY_NOTE,
			     "whether vCUDA's manager runs, root alone can see: %s\nsudo ctr-gpu doctor", strerror(-r));
}

static void vcuda_check_driver(const struct doctor_context *examination, struct findings *findings,
			       enum severity severity)
{
	for (size_t i = 0; examination->host && examination->here[i]; i++) {
		struct driver_facts facts;

		host_read_facts(examination->host, examination->here[i]->backend, &facts);
		if (facts.driver_version && !vcuda_knows_driver(facts.driver_version))
			findings_add(findings, "vcuda.old-driver", severity,
				     "%s %s is too old for vCUDA, which needs %d or newer\nUpdate the driver.",
				     examination->here[i]->driver, facts.driver_version, VCUDA_OLDEST_DRIVER);
		driver_facts_clear(&facts);
	}
}

/* Without Landlock, a container that takes over its server can open every world-accessible file of the host. */
static void vcuda_check_paths(struct findings *findings)
{
	if (landlock_version() > 0)
		findings_add(findings, "vcuda.paths", SEVERITY_OK,
			     "vCUDA's servers can open the driver's files and their GPUs alone");
	else
		findings_add(findings, "vcuda.paths", SEVERITY_WARNING,
			     "this kernel does not limit the files that vCUDA's servers can open\n"
			     "A kernel with Landlock (5.13 or newer) does, unless lsm= leaves it out.");
}

/*
 * Whether HMM is off. The driver reports that only to its own clients, so this reads the module's option: "Y" where HMM
 * is off. Where it is on, each server turns it off for itself, and reports to the manager if that fails.
 */
static void vcuda_check_memory(struct findings *findings)
{
	_cleanup_free_ char *disabled = file_text("/sys/module/nvidia_uvm/parameters/uvm_disable_hmm");

	if (disabled && disabled[0] == 'N')
		findings_add(
			findings, "vcuda.memory", SEVERITY_NOTE,
			"vCUDA's servers switch HMM off for themselves; where that fails, the audit has \"reached\"");
	else if (disabled)
		findings_add(findings, "vcuda.memory", SEVERITY_OK,
			     "programs reach no memory of vCUDA's servers by HMM, which is off");
}

/* Everything but CUDA and NVML asks for a device, which a container of vCUDA has not. */
static void vcuda_tell_scope(enum vcuda_mode mode, struct findings *findings)
{
	findings_add(
		findings, "vcuda.scope", SEVERITY_NOTE,
		mode == VCUDA_FORCE
			? "vCUDA has no OpenCL, Vulkan, OpenGL, OptiX and video, and mode \"force\" gives no devices\n"
			  "For OpenCL and the like, set vCUDA's mode \"default\" or \"allow\" (docs/vcuda.md)."
			: "vCUDA has no OpenCL, Vulkan, OpenGL, OptiX and video\n"
			  "For OpenCL and the like, give a container devices: -e CTR_GPU_MODE=device (docs/vcuda.md).");
}

/* Where vCUDA is by request only, containers that do not request it get their GPUs without it. */
void check_vcuda(struct doctor_context *examination)
{
	enum vcuda_mode mode = examination->settings->vcuda_mode;
	enum severity severity = mode == VCUDA_ALLOW ? SEVERITY_WARNING : SEVERITY_PROBLEM;

	if (mode == VCUDA_OFF || examination->usable == 0)
		return;
	vcuda_check_client(&examination->findings, severity);
	vcuda_check_manager(&examination->findings, severity);
	vcuda_check_paths(&examination->findings);
	vcuda_tell_scope(mode, &examination->findings);
	vcuda_check_memory(&examination->findings);
	vcuda_check_driver(examination, &examination->findings, severity);
}
