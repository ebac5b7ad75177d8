/* SPDX-License-Identifier: Apache-2.0 */

/* The adapters of the host, and why each is or is not used. */

#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "cli/doctor/doctor.h"
#include "driverd/driverd.h"
#include "model/adapter.h"
#include "wsl/dxcore.h"

enum { LINES_MAX = 6 };

/* An unused adapter matters as much as there is nothing beside it; a software device is never missed. */
static enum severity adapter_severity(const struct examination *examination, const struct adapter *adapter)
{
	if (examination->usable == 0)
		return SEVERITY_PROBLEM;
	return adapter->unusable == CTR_GPU_E_NO_ADAPTER && adapter->has_luid ? SEVERITY_NOTE : SEVERITY_WARNING;
}

static void adapter_add_unusable(struct examination *examination, const struct adapter *adapter, const char *name)
{
	findings_add(&examination->findings, "adapter.unusable", adapter_severity(examination, adapter),
		     "%s [%s]: %s\n"
		     "%s",
		     name, err_name(adapter->unusable), adapter->reason, adapter->remedy);
}

static void adapter_add_usable(struct findings *findings, const struct adapter *adapter, const char *name)
{
	const char *store = adapter->driver_store ? strrchr(adapter->driver_store, '/') : NULL;

	if (adapter->has_luid)
		findings_add(findings, "adapter.usable", SEVERITY_OK, "GPU %d %s (%.48s)", adapter->index, name,
			     store ? store + 1 : "no store");
	else
		findings_add(findings, "adapter.usable", SEVERITY_OK, "GPU %d %s at %s", adapter->index, name,
			     adapter->pci_address ? adapter->pci_address : "an unknown address");
}

static void adapter_finding(struct examination *examination, const struct adapter *adapter)
{
	const char *name = adapter->name ? adapter->name : adapter_vendor(adapter);

	if (adapter->unusable)
		adapter_add_unusable(examination, adapter, name);
	else
		adapter_add_usable(&examination->findings, adapter, name);
}

/* On a computer with two vendors' GPUs people look for NVIDIA's, which Windows keeps to itself in TCC mode. */
static void adapters_add_vendors(struct examination *examination, const struct inventory *inventory)
{
	for (size_t i = 0; i < inventory->count; i++)
		if (inventory->adapters[i].vendor_id == PCI_VENDOR_NVIDIA)
			return;
	if (!examination->gpu_pv || examination->usable == 0)
		return;
	findings_add(&examination->findings, "adapter.no-nvidia", SEVERITY_NOTE,
		     "none of them is NVIDIA's: CUDA programs will find no device\n"
		     "If the host has one: install its driver in Windows; one in TCC mode is not shared (nvidia-smi "
		     "-dm 0).");
}

static void adapter_broken_dxcore(struct examination *examination, const char *message)
{
	findings_add(&examination->findings, "adapter.dxcore", SEVERITY_PROBLEM,
		     "%.*s, and programs in containers ask it, too\n"
		     "%s",
		     (int)strcspn(message, "\n;"), message,
		     examination->wsl ? "Run wsl --update, then wsl --shutdown in Windows; if that does not help, "
					"install the GPU's driver there again."
				      : "Copy libdxcore.so again from C:\\Program Files\\WSL\\lib of a Windows host.");
}

/*
 * Whether libdxcore answers: we can do without it, but what a driver's libraries load in a container is this file. The
 * inventory may have asked it already.
 */
static void adapters_check_dxcore(struct examination *examination)
{
	const struct settings *settings = &examination->context->settings;
	const struct strv *notes = &examination->host->inventory.notes;
	_cleanup_free_ char *library = NULL, *program = NULL;
	struct dxg_facts *facts = NULL;
	struct err err = {0};
	size_t count = 0;

	for (size_t i = 0; i < notes->count; i++)
		if (strstr(notes->items[i], "libdxcore")) {
			adapter_broken_dxcore(examination, notes->items[i]);
			return;
		}
	if (!examination->gpu_pv || dxcore_find(settings, &library) < 0 || !library ||
	    driverd_find(settings, &program, &err) != 0)
		return;
	if (driverd_dxcore_adapters(settings, library, &facts, &count, &err) != 0)
		adapter_broken_dxcore(examination, err.text);
	dxg_facts_free(facts, count);
}

static void adapters_add(struct examination *examination)
{
	const struct inventory *inventory = &examination->host->inventory;
	size_t lines = 0, more = 0;

	for (size_t i = 0; i < inventory->count; i++)
		examination->usable += inventory->adapters[i].index >= 0;
	for (size_t i = 0; i < inventory->count; i++) {
		if (inventory->adapters[i].is_part)
			continue;
		if (lines++ < LINES_MAX)
			adapter_finding(examination, &inventory->adapters[i]);
		else
			more++;
	}
	if (more > 0)
		findings_add(&examination->findings, "adapter.more", SEVERITY_OK, "and %zu more: ctr-gpu info", more);
	for (size_t i = 0; i < inventory->notes.count; i++)
		if (!strstr(inventory->notes.items[i], "libdxcore"))
			findings_add_message(&examination->findings, "adapter.inventory", SEVERITY_WARNING,
					     inventory->notes.items[i]);
	adapters_check_dxcore(examination);
	adapters_add_vendors(examination, inventory);
}

static void adapters_add_none(struct examination *examination)
{
	findings_add(&examination->findings, "adapter.none", SEVERITY_PROBLEM,
		     "the GPU device is there and lists no adapter\n"
		     "%s",
		     examination->gpu_pv
			     ? "Install the GPU's current driver in Windows (not in TCC mode) and run wsl --shutdown; "
			       "a Hyper-V guest needs Add-VMGpuPartitionAdapter."
			     : "Pass a GPU through to this machine, and look at dmesg for what NVIDIA's module says.");
}

void check_adapters(struct examination *examination)
{
	int r;

	if (!examination->gpu_pv && !examination->native)
		return;
	r = ctr_gpu_host_new(examination->context, &examination->host);
	if (r != 0) {
		findings_add_message(&examination->findings, "adapter.inventory", SEVERITY_PROBLEM,
				     ctr_gpu_context_message(examination->context));
		return;
	}
	adapters_add(examination);
	if (examination->host->inventory.count == 0)
		adapters_add_none(examination);
}
