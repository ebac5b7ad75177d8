/* SPDX-License-Identifier: Apache-2.0 */

/* The adapters of the host, and why each is or is not used. */

#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "cli/doctor/doctor.h"
#include "model/adapter.h"

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
		findings_add_message(findings, "adapter.inventory", SEVERITY_PROBLEM,
				     ctr_gpu_context_message(examination->context));
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
