/* SPDX-License-Identifier: Apache-2.0 */

/* The adapters of the host, and why each is or is not used. */

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "base/err.h"
#include "cli/doctor/doctor.h"
#include "model/adapter.h"
#include "plan/plan.h"
#include "system/noexec.h"

enum { LINES_MAX = 6 };

static bool adapter_is_named_alike(const struct adapter *a, const struct adapter *b)
{
	return a != b && !b->is_part && a->name && b->name && streq(a->name, b->name);
}

/* Distinguishes adapters of one name: by a partition's node, the PCI address, or the LUID that Windows assigned. */
static void adapter_describe_difference(const struct inventory *inventory, const struct adapter *adapter, char ret[96])
{
	char luid[LUID_TEXT_SIZE];
	bool alike = false;

	*ret = '\0';
	for (size_t i = 0; i < inventory->count; i++)
		alike = alike || adapter_is_named_alike(adapter, &inventory->adapters[i]);
	luid_format(adapter->luid, luid);
	if (adapter->partitions && alike)
		(void)snprintf(ret, 96, ", /dev/dri/renderD%d, one of its %zu parts", adapter->minor,
			       adapter->partitions);
	else if (adapter->has_luid && alike)
		(void)snprintf(ret, 96, " at %.64s", adapter->pci_address ? adapter->pci_address : luid);
}

static void adapter_finding(struct doctor_context *examination, const struct adapter *adapter)
{
	const char *name = adapter->name ? adapter->name : adapter_vendor(adapter);
	const char *kind = adapter->is_npu ? "NPU" : "GPU";
	const char *store = adapter->driver_store ? strrchr(adapter->driver_store, '/') : NULL;
	enum severity severity = SEVERITY_WARNING;
	char difference[96];

	adapter_describe_difference(examination->inventory, adapter, difference);
	/* A problem if no other adapter can be used. An unusable software device or NPU is only a note. */
	if (examination->usable == 0)
		severity = SEVERITY_PROBLEM;
	else if (adapter->is_npu || (adapter->unusable == CTR_GPU_E_NO_ADAPTER && adapter->has_luid))
		severity = SEVERITY_NOTE;
	if (adapter->unusable)
		findings_add(&examination->findings, "adapter.unusable", severity, "%s [%s]: %s\n%s", name,
			     err_name(adapter->unusable), adapter->reason, adapter->remedy);
	else if (store)
		findings_add(&examination->findings, "adapter.usable", SEVERITY_OK, "%s %d %s (%.48s)%s", kind,
			     adapter->index, name, store + 1, difference);
	else
		findings_add(&examination->findings, "adapter.usable", SEVERITY_OK, "%s %d %s at %s%s", kind,
			     adapter->index, name, adapter->pci_address ? adapter->pci_address : "an unknown address",
			     difference);
}

void check_adapters(struct doctor_context *examination)
{
	struct findings *findings = &examination->findings;
	const struct inventory *inventory;
	size_t whole = 0;

	if (!examination->here[0])
		return;
	if (ctr_gpu_host_new(examination->context, &examination->host) != 0) {
		findings_add_error(findings, "adapter.inventory", SEVERITY_PROBLEM, &examination->context->err);
		return;
	}
	examination->inventory = inventory = &examination->host->inventory;
	for (size_t i = 0; i < inventory->count; i++)
		examination->usable += inventory->adapters[i].index >= 0;
	for (size_t i = 0; i < inventory->count; i++)
		if (!inventory->adapters[i].is_part && whole++ < LINES_MAX)
			adapter_finding(examination, &inventory->adapters[i]);
	if (whole > LINES_MAX)
		findings_add(findings, "adapter.more", SEVERITY_OK, "and %zu more: ctr-gpu info", whole - LINES_MAX);
}

void check_adapter_notes(struct doctor_context *examination)
{
	const struct inventory *inventory = examination->inventory;

	if (!inventory)
		return;
	/* A problem that was reported already is not reported again. */
	for (size_t i = 0; i < inventory->notes.count && !findings_block(&examination->findings); i++)
		findings_add_message(&examination->findings, "adapter.inventory", SEVERITY_WARNING,
				     inventory->notes.items[i]);
	if (inventory->count == 0 && !findings_block(&examination->findings))
		findings_add(&examination->findings, "adapter.none", SEVERITY_PROBLEM,
			     "the GPU device is there and lists no adapter\n"
			     "%s",
			     examination->here[0]->advise_no_adapter());
}

/* ---- driver ---- */

/* The driver's versions and files, and whether a plan can be made with them. */

enum { REMARKS_MAX = 3 };

void driver_check_noexec(struct findings *findings, const struct plan *plan)
{
	_cleanup_strv_ struct strv told = {0};

	for (size_t i = 0; i < plan->mount_count; i++) {
		_cleanup_free_ char *path = strdup(plan->mounts[i].source);
		struct statvfs mount;

		if (plan->mounts[i].kind > PLAN_PROGRAM || !path || statvfs(path, &mount) < 0 ||
		    !(mount.f_flag & ST_NOEXEC))
			continue;
		noexec_find_mount(path);
		if (strv_contains(&told, path) || strv_add(&told, path) < 0)
			continue;
		findings_add(findings, "driver.noexec", SEVERITY_PROBLEM,
			     "%s is mounted noexec: programs in containers cannot load the driver's libraries\n"
			     "sudo mount -o remount,bind,exec %s; look in /etc/fstab for what mounts it so.",
			     path, path);
	}
}

void driver_check_missing(struct findings *findings, const struct plan *plan)
{
	for (size_t i = 0; i < plan->obstacle_count; i++)
		if (plan->obstacles[i].library)
			findings_add(findings, "driver.missing", SEVERITY_PROBLEM, "%s\n%s", plan->obstacles[i].reason,
				     plan->obstacles[i].remedy);
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
		findings_add_error(findings, "driver.files", SEVERITY_PROBLEM, &examination->context->err);
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
