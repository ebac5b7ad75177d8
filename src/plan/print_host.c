/* SPDX-License-Identifier: Apache-2.0 */

/* The inventory, for people, programs and spreadsheets. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/print.h"
#include "ctr-gpu.h"
#include "lib/context.h"

static void print_host_line(FILE *file, const char *label, const char *value)
{
	print_safe(file, "    %-14s", label);
	print_write_text(value ? value : "unknown", file);
	(void)fputc('\n', file);
}

static void print_host_heading(FILE *file, const struct adapter *adapter)
{
	if (adapter->is_part)
		print_safe(file, "%s %d:%d ", adapter->backend->part, adapter->whole, adapter->part);
	else if (adapter->index >= 0)
		print_safe(file, "%s %-3d ", adapter->is_npu ? "NPU" : "GPU", adapter->index);
	else
		print_safe(file, "%s -   ", adapter->is_npu ? "NPU" : "GPU");
	print_write_text(adapter->name ? adapter->name : "(the driver gives no name)", file);
	(void)fputc('\n', file);
}

static int print_host_adapter(FILE *file, const struct adapter *adapter)
{
	_cleanup_strv_ struct strv lines = {0};
	char vendor[64];

	print_host_heading(file, adapter);
	(void)snprintf(vendor, sizeof(vendor), "%s (%04x:%04x)", adapter_vendor(adapter), adapter->vendor_id,
		       adapter->device_id);
	print_host_line(file, "vendor", vendor);
	print_host_line(file, "kind", adapter->compute_only ? "compute only" : "graphics and compute");
	print_host_line(file, "PCI address", adapter->pci_address);
	if (adapter->uuid)
		print_host_line(file, "UUID", adapter->uuid);
	if (adapter->backend->describe && adapter->backend->describe(adapter, &lines) < 0)
		return -ENOMEM;
	for (size_t i = 0; i + 1 < lines.count; i += 2)
		print_host_line(file, lines.items[i], lines.items[i + 1]);
	print_host_line(file, "backend", adapter->backend->name);
	if (adapter->unusable) {
		print_safe(file, "    %-14s[%s] ", "not usable:", err_name(adapter->unusable));
		print_write_text(adapter->reason, file);
		print_safe(file, "\n");
		print_host_line(file, "", adapter->remedy);
	}
	return 0;
}

/* ---- drivers ---- */

/* The usable adapters of a backend are neighbours. */
void host_read_facts(const struct ctr_gpu_host *host, const struct backend *backend, struct driver_facts *ret)
{
	_cleanup_free_ const struct adapter **adapters = calloc(host->inventory.count + 1, sizeof(*adapters));
	size_t count = 0;

	for (size_t i = 0; adapters && i < host->inventory.count; i++)
		if (host->inventory.adapters[i].backend == backend && host->inventory.adapters[i].index >= 0)
			adapters[count++] = &host->inventory.adapters[i];
	*ret = (struct driver_facts){0};
	if (adapters && backend->facts)
		(void)backend->facts(host->settings, host_backend_data(host, backend), adapters, count, ret);
}

static void print_host_driver(const struct ctr_gpu_host *host, const struct backend *backend, FILE *file)
{
	struct driver_facts facts;

	host_read_facts(host, backend, &facts);
	if (facts.driver_version || facts.cuda_major > 0) {
		print_safe(file, "driver  %s", backend->name);
		if (facts.driver_version)
			print_safe(file, " %s", facts.driver_version);
		if (facts.cuda_major > 0)
			(void)fprintf(file, ", CUDA %d.%d", facts.cuda_major, facts.cuda_minor);
		(void)fputc('\n', file);
	}
	driver_facts_clear(&facts);
}

static json_t *host_driver_json(const struct ctr_gpu_host *host, const struct backend *backend)
{
	struct driver_facts facts;
	json_t *json;

	host_read_facts(host, backend, &facts);
	json = json_pack("{s:s, s:o, s:o, s:o, s:o}", "backend", backend->name, "version",
			 print_string(facts.driver_version), "cuda",
			 facts.cuda_major > 0 ? json_sprintf("%d.%d", facts.cuda_major, facts.cuda_minor) : json_null(),
			 "architecture", print_string(facts.architecture), "brand", print_string(facts.brand));
	driver_facts_clear(&facts);
	return json;
}

/* ---- how a choice is enforced ---- */

/* Only one backend has several GPUs behind one node. Return: 1; 0 if there is nothing to say; -ENOMEM. */
static int print_host_query_enforcement(const struct ctr_gpu_host *host, struct enforcement *ret)
{
	for (size_t i = 0; i < host->present_count; i++)
		if (host->present[i]->enforcement)
			return host->present[i]->enforcement(host->settings, host->inventory.adapters,
							     host->inventory.count, ret);
	return 0;
}

static int print_host_enforcement(const struct ctr_gpu_host *host, FILE *file)
{
	struct enforcement enforcement = {0};
	int r = print_host_query_enforcement(host, &enforcement);

	if (r <= 0)
		return r;
	print_safe(file, "choice  %s%s", enforcement.grade ? enforcement.grade : "refused",
		   enforcement.strict ? ", strict" : "");
	if (enforcement.why) {
		(void)fputs(!enforcement.grade || streq(enforcement.grade, "guard") ? "; " : "; no guard: ", file);
		print_write_text(enforcement.why, file);
	}
	(void)fputc('\n', file);
	free(enforcement.why);
	return 0;
}

/* Return: NULL without memory. */
static json_t *print_host_enforcement_json(const struct ctr_gpu_host *host)
{
	struct enforcement enforcement = {0};
	int r = print_host_query_enforcement(host, &enforcement);
	json_t *json = r < 0    ? NULL
		       : r == 0 ? json_null()
				: json_pack("{s:o, s:b, s:o}", "grade", print_string(enforcement.grade), "strict",
					    enforcement.strict, "why", print_string(enforcement.why));

	free(enforcement.why);
	return json;
}

/* What was found on the way, and what backends remark when they are asked. */
static int host_list_notes(const struct ctr_gpu_host *host, struct strv *ret)
{
	int r = 0;

	for (size_t i = 0; i < host->inventory.notes.count && r == 0; i++)
		r = strv_add(ret, host->inventory.notes.items[i]);
	for (size_t i = 0; i < host->present_count && r == 0; i++)
		if (host->present[i]->driver_notes)
			r = host->present[i]->driver_notes(host->settings, &host->inventory, ret);
	return r;
}

/* ---- formats ---- */

/* The remedies in an error's sentence are lines of their own. */
static void print_host_note(char *note, FILE *file)
{
	const char *head = "note: ";
	char *rest;

	for (char *line = strtok_r(note, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		(void)fputs(head, file);
		print_write_text(line, file);
		(void)fputc('\n', file);
		head = "      ";
	}
}

static int print_host_text(const struct ctr_gpu_host *host, FILE *file)
{
	const struct inventory *inventory = &host->inventory;
	_cleanup_strv_ struct strv notes = {0};

	if (inventory->count == 0)
		(void)fputs("The GPU device is there, and lists no adapter.\n", file);
	for (size_t i = 0; i < inventory->count; i++)
		if (print_host_adapter(file, &inventory->adapters[i]) < 0)
			return -ENOMEM;
	for (size_t i = 0; i < host->present_count; i++)
		print_host_driver(host, host->present[i], file);
	if (print_host_enforcement(host, file) < 0 || host_list_notes(host, &notes) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < notes.count; i++)
		print_host_note(notes.items[i], file);
	return print_finish(file);
}

static json_t *host_adapter_json(const struct adapter *adapter)
{
	char luid[LUID_TEXT_SIZE], number[ADAPTER_NUMBER_SIZE];
	bool is_gpu = adapter->index >= 0 && !adapter->is_npu;

	luid_format(adapter->luid, luid);
	adapter_format_number(adapter, number);
	return json_pack("{s:o, s:o, s:o, s:s, s:o, s:s, s:i, s:i, s:b, s:o, s:o, s:o, s:i, s:i, s:o, s:o, s:o, s:o}",
			 "index", is_gpu ? json_integer(adapter->index) : json_null(), "part",
			 print_string(adapter->is_part ? number : NULL), "npu",
			 print_string(adapter->is_npu && adapter->index >= 0 ? number : NULL), "backend",
			 adapter->backend->name, "name", print_string(adapter->name), "vendor", adapter_vendor(adapter),
			 "vendorId", (int)adapter->vendor_id, "deviceId", (int)adapter->device_id, "computeOnly",
			 adapter->compute_only, "pciAddress", print_string(adapter->pci_address), "uuid",
			 print_string(adapter->uuid), "luid", print_string(adapter->has_luid ? luid : NULL),
			 "wddmVersion", (int)adapter->wddm_version, "typeBits", (int)adapter->type_bits, "driverStore",
			 print_string(adapter->driver_store), "unusable",
			 print_string(adapter->unusable ? err_name(adapter->unusable) : NULL), "reason",
			 print_string(adapter->reason), "remedy", print_string(adapter->remedy));
}

static int print_host_json(const struct ctr_gpu_host *host, FILE *file)
{
	_cleanup_strv_ struct strv notes = {0};

	if (host_list_notes(host, &notes) < 0)
		return -ENOMEM;
	return print_write_json(
		json_pack("{s:s, s:o, s:o, s:o, s:o}", "version", CTR_GPU_VERSION, "adapters",
			  print_array(i, host->inventory.count, host_adapter_json(&host->inventory.adapters[i])),
			  "drivers", print_array(i, host->present_count, host_driver_json(host, host->present[i])),
			  "choice", print_host_enforcement_json(host), "notes", print_strings(&notes)),
		file);
}

static int print_host_csv(const struct ctr_gpu_host *host, FILE *file)
{
	(void)fputs("index,backend,vendor,name,pci_address,uuid,luid,driver_store,unusable,reason\n", file);
	for (size_t i = 0; i < host->inventory.count; i++) {
		const struct adapter *adapter = &host->inventory.adapters[i];
		char luid[LUID_TEXT_SIZE], index[ADAPTER_NUMBER_SIZE];
		const char *fields[] = {
			index,
			adapter->backend->name,
			adapter_vendor(adapter),
			adapter->name,
			adapter->pci_address,
			adapter->uuid,
			adapter->has_luid ? luid : NULL,
			adapter->driver_store,
			adapter->unusable ? err_name(adapter->unusable) : NULL,
			adapter->reason,
		};

		luid_format(adapter->luid, luid);
		adapter_format_number(adapter, index);
		for (size_t j = 0; j < ARRAY_SIZE(fields); j++) {
			(void)fputs(j > 0 ? "," : "", file);
			print_write_csv_field(fields[j], file);
		}
		(void)fputc('\n', file);
	}
	return print_finish(file);
}

int ctr_gpu_host_write(const struct ctr_gpu_host *host, enum ctr_gpu_format format, FILE *file)
{
	struct err err = {0};
	int r = host_identify(host, &err);

	if (r == -ENOMEM)
		return r;
	if (r != 0)
		log_debug(&host->settings->log, "%s", err.text);
	switch (format) {
	case CTR_GPU_FORMAT_TEXT:
		return print_host_text(host, file);
	case CTR_GPU_FORMAT_JSON:
		return print_host_json(host, file);
	case CTR_GPU_FORMAT_CSV:
		return print_host_csv(host, file);
	case CTR_GPU_FORMAT_PATHS:
		break;
	}
	return -EINVAL;
}
