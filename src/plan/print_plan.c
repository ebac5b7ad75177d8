/* SPDX-License-Identifier: Apache-2.0 */

/* The inventory and a plan, for people, programs and, the inventory, spreadsheets. */

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "base/json.h"
#include "base/log.h"
#include "base/print.h"
#include "base/str.h"
#include "ctr-gpu.h"
#include "lib/context.h"
#include "plan/plan.h"

/* ---- host ---- */

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

/* ---- host: drivers ---- */

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

/* ---- host: how a choice is enforced ---- */

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

/* ---- host: formats ---- */

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

/* ---- plan ---- */

/* Entries keep their order of application. */

static void print_plan_reason(FILE *file, const char *reason)
{
	(void)fputs("\n            ", file);
	print_write_text(reason, file);
	(void)fputc('\n', file);
}

static void print_plan_mount(FILE *file, const struct plan_mount *mount)
{
	print_safe(file, "mount       %s", mount->source);
	if (!streq(mount->source, mount->target))
		print_safe(file, " on %s", mount->target);
	print_safe(file, " (read-only%s)", mount->flags & PLAN_MOUNT_NOEXEC ? ", noexec" : "");
	print_plan_reason(file, mount->reason);
}

static void print_plan_library_dir(FILE *file, const struct plan_library_dir *dir)
{
	print_safe(file, "libraries   %s (%zu, %s the image's own)", dir->path, dir->libraries.count,
		   dir->overrides_image ? "before" : "behind");
	print_plan_reason(file, dir->reason);
}

static void print_plan_proc_text(const struct plan *plan, FILE *file)
{
	for (size_t i = 0; i < plan->file_count; i++) {
		print_safe(file, "file        %s", plan->files[i].target);
		print_plan_reason(file, plan->files[i].reason);
	}
	for (size_t i = 0; i < plan->hidden_count; i++) {
		print_safe(file, "hidden      %s", plan->hidden[i].path);
		print_plan_reason(file, plan->hidden[i].reason);
	}
	for (size_t i = 0; i < plan->mode_count; i++) {
		print_safe(file, "mode        %s %04o", plan->modes[i].path, plan->modes[i].mode);
		print_plan_reason(file, plan->modes[i].reason);
	}
}

static void print_plan_grant(const struct plan *plan, const struct plan_grant *grant, FILE *file)
{
	print_safe(file, "vcuda       %s (", grant->uuid);
	print_write_text(grant->name ? grant->name : "unnamed", file);
	if (grant->spare) {
		(void)fputs("), to which it may be moved", file);
		print_plan_reason(file, grant->reason);
		return;
	}
	(void)fputs("), ", file);
	vcuda_limits_print(&plan->grant_limits, file);
	(void)fputs("; no device node", file);
	print_plan_reason(file, grant->reason);
}

/* As luid_format() of the adapters has it: the high part first. */
enum { CHOSEN_SIZE = 24 };
static const char *print_plan_luid(uint64_t luid, char text[CHOSEN_SIZE])
{
	(void)snprintf(text, CHOSEN_SIZE, "LUID-%016" PRIx64, luid);
	return text;
}

static void print_plan_choice(const struct plan_choice *choice, FILE *file)
{
	char text[CHOSEN_SIZE];

	if (!choice->grade)
		return;
	print_safe(file, "choice      %s%s", choice->grade, choice->strict ? ", strict" : "");
	for (size_t i = 0; i < choice->luid_count; i++)
		print_safe(file, "%s %s", i == 0 ? ":" : ",", print_plan_luid(choice->luids[i], text));
	print_plan_reason(file, choice->reason);
}

static json_t *print_plan_choice_json(const struct plan_choice *choice)
{
	char text[CHOSEN_SIZE];

	if (!choice->grade)
		return json_null();
	return json_pack("{s:s, s:b, s:o, s:o}", "grade", choice->grade, "strict", choice->strict, "luids",
			 print_array(i, choice->luid_count, json_string(print_plan_luid(choice->luids[i], text))),
			 "reason", print_string(choice->reason));
}

static void print_plan_device(const struct plan_device *device, FILE *file)
{
	print_safe(file, "device      %s (c %u:%u %s", device->path, major(device->number), minor(device->number),
		   device->access);
	if (device->group)
		(void)fprintf(file, ", for root and group %u", device->group);
	(void)fputc(')', file);
	print_plan_reason(file, device->reason);
}

static void print_plan_env(const struct plan_env *env, FILE *file)
{
	print_safe(file, "environment %s=", env->name);
	print_write_text(env->value, file);
	print_safe(file, " (by ctr-gpu-runtime%s; with the hook, by you: -e)", env->combines ? " or CDI" : "");
	print_plan_reason(file, env->reason);
}

static void print_plan_override(const struct plan_override *override, FILE *file)
{
	(void)fputs("outranked   ", file);
	print_write_text(override->path, file);
	print_safe(file, " by %s", override->by);
	print_plan_reason(file, override->reason);
}

static void print_plan_obstacle(const struct plan_obstacle *obstacle, FILE *file)
{
	print_safe(file, "obstacle    %s", obstacle->path);
	if (obstacle->library)
		print_safe(file, ", but for images with a %s", obstacle->library);
	print_plan_reason(file, obstacle->reason);
}

static void print_plan_line(const char *noun, const char *text, FILE *file)
{
	print_safe(file, "%-11s ", noun);
	print_write_text(text, file);
	(void)fputc('\n', file);
}

static int print_plan_text(const struct plan *plan, FILE *file)
{
	for (size_t i = 0; i < plan->adapters.count; i++)
		print_plan_line("GPU", plan->adapters.items[i], file);
	for (size_t i = 0; i < plan->device_count; i++)
		print_plan_device(&plan->devices[i], file);
	for (size_t i = 0; i < plan->grant_count; i++)
		print_plan_grant(plan, &plan->grants[i], file);
	for (size_t i = 0; i < plan->mount_count; i++)
		print_plan_mount(file, &plan->mounts[i]);
	for (size_t i = 0; i < plan->symlink_count; i++) {
		print_safe(file, "symlink     %s -> %s", plan->symlinks[i].path, plan->symlinks[i].points_to);
		print_plan_reason(file, plan->symlinks[i].reason);
	}
	print_plan_proc_text(plan, file);
	for (size_t i = 0; i < plan->env_count; i++)
		print_plan_env(&plan->env[i], file);
	for (size_t i = 0; i < plan->library_dir_count; i++)
		print_plan_library_dir(file, &plan->library_dirs[i]);
	for (size_t i = 0; i < plan->override_count; i++)
		print_plan_override(&plan->override[i], file);
	for (size_t i = 0; i < plan->obstacle_count; i++)
		print_plan_obstacle(&plan->obstacles[i], file);
	for (size_t i = 0; i < plan->claim_count; i++) {
		(void)fputs("exclusive   ", file);
		print_write_text(plan->claims[i].name, file);
		print_plan_reason(file, plan->claims[i].reason);
	}
	print_plan_choice(&plan->choice, file);
	for (size_t i = 0; i < plan->warnings.count; i++)
		print_plan_line("warning", plan->warnings.items[i], file);
	return print_finish(file);
}

/* An array with the members that follow, of each `e` of a list, and its reason. */
#define LIST_JSON(noun, list, members, ...)                                                                  \
	print_array(i, plan->noun##_count, ({                                                                \
			    const struct plan_##noun *e = &plan->list[i];                                    \
			    json_pack("{" members ", s:o}", __VA_ARGS__, "reason", print_string(e->reason)); \
		    }))

static json_t *print_plan_pack_grant(const struct plan *plan, const struct plan_grant *grant)
{
	json_t *packed = json_pack("{s:o, s:o, s:o, s:b, s:o}", "uuid", print_string(grant->uuid), "pciAddress",
				   print_string(grant->address), "name", print_string(grant->name), "spare",
				   grant->spare, "reason", print_string(grant->reason));

	return vcuda_limits_pack(&plan->grant_limits, packed);
}

static int print_plan_json(const struct plan *plan, FILE *file)
{
	json_t *devices = LIST_JSON(device, devices, "s:o, s:i, s:i, s:s, s:o", "path", print_string(e->path), "major",
				    (int)major(e->number), "minor", (int)minor(e->number), "access", e->access, "group",
				    e->group ? json_integer(e->group) : json_null());
	json_t *grants = print_array(i, plan->grant_count, print_plan_pack_grant(plan, &plan->grants[i]));
	json_t *mounts = LIST_JSON(mount, mounts, "s:o, s:o, s:b, s:b", "source", print_string(e->source), "target",
				   print_string(e->target), "directory", e->directory, "noexec",
				   (e->flags & PLAN_MOUNT_NOEXEC) != 0);
	json_t *symlinks = LIST_JSON(symlink, symlinks, "s:o, s:o", "path", print_string(e->path), "pointsTo",
				     print_string(e->points_to));
	json_t *files = LIST_JSON(file, files, "s:o, s:o", "target", print_string(e->target), "content",
				  print_string(e->content));
	json_t *hidden = LIST_JSON(hidden, hidden, "s:o", "path", print_string(e->path));
	json_t *modes = LIST_JSON(mode, modes, "s:o, s:o", "path", print_string(e->path), "mode",
				  json_sprintf("%04o", e->mode));
	json_t *env =
		LIST_JSON(env, env, "s:o, s:o, s:o", "name", print_string(e->name), "value", print_string(e->value),
			  "setBy", e->combines ? json_pack("[s, s]", "runtime", "cdi") : json_pack("[s]", "runtime"));
	json_t *override =
		LIST_JSON(override, override, "s:o, s:o", "path", print_string(e->path), "by", print_string(e->by));
	json_t *obstacles = LIST_JSON(obstacle, obstacles, "s:o, s:o, s:o", "path", print_string(e->path), "library",
				      print_string(e->library), "remedy", print_string(e->remedy));
	json_t *claims = LIST_JSON(claim, claims, "s:o, s:o, s:o", "gpu", print_string(e->gpu), "name",
				   print_string(e->name), "mayBe", print_string(e->may_be));
	json_t *library_dirs =
		LIST_JSON(library_dir, library_dirs, "s:o, s:b, s:o", "path", print_string(e->path), "overridesImage",
			  e->overrides_image, "libraries", print_strings(&e->libraries));

	return print_write_json(json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
					  "adapters", print_strings(&plan->adapters), "devices", devices, "vcuda",
					  grants, "mounts", mounts, "symlinks", symlinks, "files", files, "hidden",
					  hidden, "modes", modes, "environment", env, "libraryDirectories",
					  library_dirs, "outranked", override, "obstacles", obstacles, "exclusive",
					  claims, "choice", print_plan_choice_json(&plan->choice), "warnings",
					  print_strings(&plan->warnings)),
				file);
}

/* One file may go to several places of a container. */
static bool print_plan_is_listed(const struct plan *plan, size_t number)
{
	for (size_t i = 0; i < number; i++)
		if (streq(plan->mounts[i].source, plan->mounts[number].source))
			return true;
	return false;
}

static int print_plan_paths(const struct plan *plan, FILE *file)
{
	for (size_t i = 0; i < plan->device_count; i++)
		print_safe(file, "%s\n", plan->devices[i].path);
	for (size_t i = 0; i < plan->mount_count; i++)
		if (!print_plan_is_listed(plan, i))
			print_safe(file, "%s\n", plan->mounts[i].source);
	return print_finish(file);
}

/* ---- plan: files of some kinds ---- */

/* Return: the libraries in a directory that is mounted whole; NULL for another mount. */
static const struct strv *print_plan_libraries(const struct plan *plan, const struct plan_mount *mount)
{
	for (size_t i = 0; mount->directory && i < plan->library_dir_count; i++)
		if (streq(plan->library_dirs[i].path, mount->target))
			return &plan->library_dirs[i].libraries;
	return NULL;
}

static void print_plan_files(const struct plan *plan, const struct plan_mount *mount, FILE *file)
{
	const struct strv *libraries = print_plan_libraries(plan, mount);

	if (!libraries)
		print_safe(file, "%s\n", mount->source);
	for (size_t i = 0; libraries && i < libraries->count; i++)
		print_safe(file, "%s/%s\n", mount->source, libraries->items[i]);
}

int ctr_gpu_plan_write_files(const struct ctr_gpu_plan *plan, unsigned kinds, FILE *file)
{
	static const unsigned kind_of[] = {
		[PLAN_LIBRARY] = CTR_GPU_FILES_LIBRARIES, [PLAN_PROGRAM] = CTR_GPU_FILES_PROGRAMS,
		[PLAN_SOCKET] = CTR_GPU_FILES_SOCKETS,    [PLAN_FIRMWARE] = CTR_GPU_FILES_FIRMWARE,
		[PLAN_CONFIG] = CTR_GPU_FILES_CONFIG,
	};

	for (size_t i = 0; (kinds & CTR_GPU_FILES_DEVICES) && i < plan->data.device_count; i++)
		print_safe(file, "%s\n", plan->data.devices[i].path);
	for (size_t i = 0; i < plan->data.mount_count; i++)
		if ((kinds & kind_of[plan->data.mounts[i].kind]) && !print_plan_is_listed(&plan->data, i))
			print_plan_files(&plan->data, &plan->data.mounts[i], file);
	return print_finish(file);
}

int ctr_gpu_plan_write(const struct ctr_gpu_plan *plan, enum ctr_gpu_format format, FILE *file)
{
	switch (format) {
	case CTR_GPU_FORMAT_TEXT:
		return print_plan_text(&plan->data, file);
	case CTR_GPU_FORMAT_JSON:
		return print_plan_json(&plan->data, file);
	case CTR_GPU_FORMAT_PATHS:
		return print_plan_paths(&plan->data, file);
	case CTR_GPU_FORMAT_CSV:
		break;
	}
	return -EINVAL;
}
