/* SPDX-License-Identifier: Apache-2.0 */

/* The driver's versions and files, and whether a plan can be made with them. */

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "cli/doctor/doctor.h"
#include "plan/plan.h"

enum { REMARKS_MAX = 3 };

/* The mount that a path is on: what must be mounted anew. */
static void driver_find_mount(char *path)
{
	struct statx stx;
	char *slash;

	while (statx(AT_FDCWD, path, AT_NO_AUTOMOUNT, 0, &stx) == 0 && !(stx.stx_attributes & STATX_ATTR_MOUNT_ROOT) &&
	       (slash = strrchr(path, '/')) && slash > path)
		*slash = '\0';
}

/* Mounts keep the flags of those that they are made of: the loader maps nothing of such a one for a program to run. */
void driver_check_noexec(struct findings *findings, const struct plan *plan)
{
	_cleanup_strv_ struct strv told = {0};

	for (size_t i = 0; i < plan->mount_count; i++) {
		_cleanup_free_ char *path = strdup(plan->mounts[i].source);
		struct statvfs mount;

		if (plan->mounts[i].kind > PLAN_PROGRAM || !path || statvfs(path, &mount) < 0 ||
		    !(mount.f_flag & ST_NOEXEC))
			continue;
		driver_find_mount(path);
		if (strv_contains(&told, path) || strv_add(&told, path) < 0)
			continue;
		findings_add(findings, "driver.noexec", SEVERITY_PROBLEM,
			     "%s is mounted noexec: programs in containers cannot load the driver's libraries\n"
			     "sudo mount -o remount,bind,exec %s; look in /etc/fstab for what mounts it so.",
			     path, path);
	}
}

/* Return: whether a container could be given all of it. */
static bool driver_check_plan(struct doctor_context *examination)
{
	struct findings *findings = &examination->findings;
	bool explained = findings_block(findings);
	struct ctr_gpu_request *request = NULL;
	struct ctr_gpu_plan *plan = NULL;
	int r;

	r = ctr_gpu_request_new(examination->context, &request);
	if (r == 0)
		r = ctr_gpu_request_set_devices(request, "all");
	if (r == 0)
		r = ctr_gpu_plan_new(examination->context, request, examination->host, &plan);
	/* What fails because of a problem found earlier was reported with that. */
	if (r != 0 && !explained)
		findings_add_message(findings, "driver.files", SEVERITY_PROBLEM,
				     ctr_gpu_context_message(examination->context));
	for (size_t i = 0; r == 0 && i < plan->data.warnings.count && i < REMARKS_MAX && !explained; i++)
		findings_add_message(findings, "driver.plan", SEVERITY_WARNING, plan->data.warnings.items[i]);
	if (r == 0)
		driver_check_noexec(findings, &plan->data);
	ctr_gpu_plan_unref(plan);
	ctr_gpu_request_unref(request);
	return r == 0;
}

static void driver_add_version(struct doctor_context *examination, const struct backend_checks *checks)
{
	struct driver_facts facts;
	char cuda[32] = "";

	host_read_facts(examination->host, checks->backend, &facts);
	if (facts.cuda_major > 0)
		(void)snprintf(cuda, sizeof(cuda), "CUDA %d.%d", facts.cuda_major, facts.cuda_minor);
	if (facts.driver_version)
		findings_add(&examination->findings, "driver.version", SEVERITY_OK, "%s %s%s%s", checks->driver,
			     facts.driver_version, cuda[0] ? ", " : "", cuda);
	else if (cuda[0])
		findings_add(&examination->findings, "driver.version", SEVERITY_OK, "%s offers %s", checks->driver,
			     cuda);
	driver_facts_clear(&facts);
}

void check_driver(struct doctor_context *examination)
{
	if (examination->usable == 0)
		return;
	for (size_t i = 0; examination->here[i]; i++)
		driver_add_version(examination, examination->here[i]);
	examination->planned = driver_check_plan(examination);
}
