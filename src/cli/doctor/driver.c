/* SPDX-License-Identifier: Apache-2.0 */

/* The driver's versions and files, and whether a plan can be made with them. */

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "cli/doctor/doctor.h"
#include "cli/doctor/file.h"
#include "engines/package.h"
#include "ldcache/ldcache.h"
#include "lib/plan.h"
#include "nvidia/module.h"
#include "nvidia/proc.h"
#include "wsl/paths.h"

enum { REMARKS_MAX = 3 };

/* ---- what a container would be given ---- */

static int driver_make_plan(struct examination *examination, struct ctr_gpu_plan **ret)
{
	struct ctr_gpu_request *request = NULL;
	int r;

	r = ctr_gpu_request_new(examination->context, &request);
	if (r == 0)
		r = ctr_gpu_request_set_devices(request, "all");
	if (r == 0)
		r = ctr_gpu_plan_new(examination->context, request, examination->host, ret);
	ctr_gpu_request_unref(request);
	return r;
}

/* Return: whether there is a plan. */
static bool driver_check_plan(struct examination *examination)
{
	struct findings *findings = &examination->findings;
	const struct finding *worst = findings_worst(findings);
	struct ctr_gpu_plan *plan = NULL;

	if (driver_make_plan(examination, &plan) != 0) {
		findings_add_message(findings, "driver.files", SEVERITY_PROBLEM,
				     ctr_gpu_context_message(examination->context));
		return false;
	}
	/* What it lacks by a problem that was found already is said already. */
	for (size_t i = 0; i < plan->data.warnings.count && i < REMARKS_MAX && worst->severity < SEVERITY_PROBLEM; i++)
		findings_add_message(findings, "driver.plan", SEVERITY_WARNING, plan->data.warnings.items[i]);
	ctr_gpu_plan_unref(plan);
	return true;
}

static void driver_add_versions(struct examination *examination)
{
	const struct ctr_gpu_host *host = examination->host;

	for (size_t i = 0; i < host->present_count; i++) {
		struct driver_facts facts;
		char cuda[32] = "";

		host_read_facts(host, host->present[i], &facts);
		if (facts.cuda_major > 0)
			(void)snprintf(cuda, sizeof(cuda), "CUDA %d.%d", facts.cuda_major, facts.cuda_minor);
		if (facts.driver_version)
			findings_add(&examination->findings, "driver.version", SEVERITY_OK, "NVIDIA driver %s%s%s",
				     facts.driver_version, cuda[0] ? ", " : "", cuda);
		else if (cuda[0])
			findings_add(&examination->findings, "driver.version", SEVERITY_OK,
				     "the driver in Windows offers %s", cuda);
		driver_facts_clear(&facts);
	}
}

/* ---- files of another driver ---- */

/* A library in the loader's cache, by the file it is; owned by the caller; NULL if there is none. */
static char *driver_resolve_library(const char *name)
{
	_cleanup_free_ char *cache = NULL;
	const char *path;
	size_t size;

	if (fd_read_file_at(AT_FDCWD, "/etc/ld.so.cache", LDCACHE_MAX_SIZE, &cache, &size) < 0)
		return NULL;
	path = ldcache_find(&(struct span){(const unsigned char *)cache, size}, name);
	return path && path[0] == '/' ? realpath(path, NULL) : NULL;
}

/* nvidia-smi then says "Driver/library version mismatch". libcuda's version is looked at when the plan is made. */
static void driver_check_nvml(struct examination *examination)
{
	_cleanup_free_ char *text = file_text(NVIDIA_PROC "/version"), *version = NULL,
			    *real = driver_resolve_library("libnvidia-ml.so.1");
	const char *suffix;

	if (!text || !real || proc_driver_version(text, &version) < 0)
		return;
	suffix = strstr(strrchr(real, '/'), ".so.");
	if (!suffix || !proc_is_version(suffix + strlen(".so.")) || streq(suffix + strlen(".so."), version))
		return;
	findings_add(&examination->findings, "driver.mismatch", SEVERITY_WARNING,
		     "%s is not of the kernel module's version %s\n"
		     "Finish the driver's update: restart the machine, or reload the module (rmmod nvidia-uvm nvidia).",
		     real, version);
}

static const char *const foreign_directories[] = {
#if defined(__x86_64__)
	"/usr/lib/x86_64-linux-gnu",
	"/lib/x86_64-linux-gnu",
#elif defined(__aarch64__)
	"/usr/lib/aarch64-linux-gnu",
	"/lib/aarch64-linux-gnu",
#endif
	"/usr/lib64",
	"/usr/lib",
};

static bool driver_is_foreign(const char *real)
{
	return real && !str_is_below(real, WSL_LIB) && !str_is_below(real, WSL_DRIVERS);
}

/* A libcuda that is not the one WSL brings; owned by the caller; NULL if there is none. */
static char *driver_find_foreign(void)
{
	char *real = driver_resolve_library("libcuda.so.1");

	for (size_t i = 0; i < ARRAY_SIZE(foreign_directories) && !driver_is_foreign(real); i++) {
		_cleanup_free_ char *path = NULL;

		free(real);
		real = str_format(&path, "%s/libcuda.so.1", foreign_directories[i]) == 0 ? realpath(path, NULL) : NULL;
	}
	if (driver_is_foreign(real))
		return real;
	free(real);
	return NULL;
}

static void driver_check_foreign(struct examination *examination)
{
	_cleanup_free_ char *real = driver_find_foreign(), *package = NULL;

	if (!real)
		return;
	package = package_of_file(real);
	findings_add(&examination->findings, "driver.linux-in-wsl", SEVERITY_WARNING,
		     "NVIDIA's driver for Linux is installed here (%s%s%s), where the one in Windows serves\n"
		     "Remove it: sudo apt purge %s; only the CUDA toolkit may be installed, without a driver.",
		     real, package ? ", package " : "", package ? package : "",
		     package ? package : "'libnvidia-*' 'nvidia-driver-*'");
}

void check_driver(struct examination *examination)
{
	bool planned = false;

	if (examination->host && examination->usable > 0) {
		driver_add_versions(examination);
		planned = driver_check_plan(examination);
	}
	if (examination->native && planned)
		driver_check_nvml(examination);
	else if (examination->gpu_pv && !examination->native)
		driver_check_foreign(examination);
}
