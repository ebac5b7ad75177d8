/* SPDX-License-Identifier: Apache-2.0 */

/*
 * /proc/driver/nvidia is the kernel's, and shows every GPU in every container. The directories of GPUs that the
 * container does not have are covered. Where params says "ModifyDeviceFiles: 1", the driver's libraries make missing
 * device nodes themselves; in a container they must not.
 */

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/fd.h"
#include "base/paths.h"
#include "nvidia/internal.h"
#include "nvidia/nvidia.h"

enum {
	SCREEN = CAPABILITY_GRAPHICS | CAPABILITY_DISPLAY,
	ENTRIES_MAX = 4096, /* of a directory */
};

int nvidia_plan_params(struct plan *plan)
{
	struct plan_file file = {.on_procfs = true};
	_cleanup_free_ char *text = NULL;
	int r;

	r = module_read_file(PATH_PROC_NVIDIA "/params", &text);
	if (r == 0)
		r = proc_set_field(text, "ModifyDeviceFiles", "0", &file.content);
	if (r < 0)
		return r == -ENOMEM ? r : 0;
	file.target = strdup(PATH_PROC_NVIDIA "/params");
	file.reason = strdup("the driver's libraries make no device nodes (ModifyDeviceFiles: 0)");
	return plan_add_file(plan, &file);
}

static int procfs_hide(const struct nvidia_plan *nvidia_plan, const char *directory, const char *name,
		       const char *reason)
{
	struct plan_hidden hidden = {.reason = strdup(reason)};

	(void)str_format(&hidden.path, "%s/%s", directory, name);
	return plan_add_hidden(nvidia_plan->plan, &hidden);
}

/* @part: that the directory belongs to the GPU of, or to the GPU instance; NULL: it has entries of all GPUs */
typedef bool (*procfs_wanted_fn)(const struct adapter *adapter, const char *name, const struct adapter *part);

/* Covers the entries of a directory that are not wanted by a selected adapter. */
static int procfs_hide_names(const struct nvidia_plan *nvidia_plan, const char *directory, const struct strv *names,
			     procfs_wanted_fn is_wanted, const struct adapter *part, const char *reason)
{
	int r = 0;

	for (size_t i = 0; i < names->count && r == 0; i++) {
		bool wanted = false;

		for (size_t j = 0; j < nvidia_plan->selected_count && !wanted; j++)
			wanted = is_wanted(nvidia_plan->selected[j], names->items[i], part);
		if (!wanted)
			r = procfs_hide(nvidia_plan, directory, names->items[i], reason);
	}
	return r;
}

/* The same for those that are of a kind. */
static int procfs_hide_entries(const struct nvidia_plan *nvidia_plan, const char *directory,
			       bool (*is_kind)(const char *name), procfs_wanted_fn is_wanted,
			       const struct adapter *part, const char *reason)
{
	_cleanup_strv_ struct strv names = {0};
	int r;

	r = fd_list_names(AT_FDCWD, directory, is_kind, ENTRIES_MAX, &names);
	/* Drivers without parts, and containers that do not see them, lack it. */
	if (r == -ENOENT || r == -EACCES || r == -EPERM)
		return 0;
	if (r < 0)
		return err_set(nvidia_plan->err, r, "cannot read %s: %m", directory);
	return procfs_hide_names(nvidia_plan, directory, &names, is_wanted, part, reason);
}

static bool procfs_is_number_behind(const char *name, const char *prefix)
{
	size_t length = strlen(prefix);

	return str_has_prefix(name, prefix) && name[length] &&
	       strspn(name + length, "0123456789") == strlen(name + length);
}

static bool procfs_has_address(const struct adapter *adapter, const char *name, const struct adapter *part)
{
	(void)part;
	return adapter->pci_address && streq(adapter->pci_address, name);
}

static bool procfs_is_gpu(const char *name)
{
	return procfs_is_number_behind(name, "gpu");
}

static bool procfs_has_minor(const struct adapter *adapter, const char *name, const struct adapter *part)
{
	(void)part;
	return adapter->minor == atoi(name + strlen("gpu"));
}

static bool procfs_is_instance(const char *name)
{
	return procfs_is_number_behind(name, "gi");
}

static bool procfs_has_instance(const struct adapter *adapter, const char *name, const struct adapter *part)
{
	return adapter->minor == part->minor &&
	       (!adapter->is_part || adapter->gpu_instance == atoi(name + strlen("gi")));
}

static bool procfs_is_compute_instance(const char *name)
{
	return procfs_is_number_behind(name, "ci");
}

static bool procfs_has_compute_instance(const struct adapter *adapter, const char *name, const struct adapter *part)
{
	return adapter->minor == part->minor &&
	       (!adapter->is_part || (adapter->gpu_instance == part->gpu_instance &&
				      adapter->compute_instance == atoi(name + strlen("ci"))));
}

/* Beside a selected part of a GPU, the GPU's other parts, and those of its own GPU instance. */
static int procfs_hide_other_parts(const struct nvidia_plan *nvidia_plan, const struct adapter *part)
{
	static const char reason[] = "a part of the GPU that was not selected";
	_cleanup_free_ char *directory = NULL, *instance = NULL;
	int r;

	if (str_format(&directory, PATH_PROC_NVIDIA "/capabilities/gpu%d/mig", part->minor) < 0 ||
	    str_format(&instance, "%s/gi%d", directory, part->gpu_instance) < 0)
		return -ENOMEM;
	r = procfs_hide_entries(nvidia_plan, directory, procfs_is_instance, procfs_has_instance, part, reason);
	return r == 0 ? procfs_hide_entries(nvidia_plan, instance, procfs_is_compute_instance,
					    procfs_has_compute_instance, part, reason)
		      : r;
}

static int procfs_add_application_profile(const struct nvidia_plan *nvidia_plan)
{
	unsigned long long minors = 0;

	for (size_t i = 0; i < nvidia_plan->selected_count; i++)
		if (nvidia_plan->selected[i]->minor < NVIDIA_PROFILE_MINORS)
			minors |= 1ULL << nvidia_plan->selected[i]->minor;
	return nvidia_plan_profile(minors, nvidia_plan->plan);
}

int nvidia_plan_profile(unsigned long long minors, struct plan *plan)
{
	struct plan_file file = {
		.target = strdup("/etc/nvidia/nvidia-application-profiles-rc.d/10-container.conf"),
		.reason = strdup("EGL shows the selected GPUs only"),
	};

	(void)str_format(
		&file.content,
		"{\"profiles\": [{\"name\": \"_container_\", \"settings\": [\"EGLVisibleDGPUDevices\", 0x%llx]}],\n"
		" \"rules\": [{\"pattern\": [], \"profile\": \"_container_\"}]}\n",
		minors);
	return plan_add_file(plan, &file);
}

int plan_procfs(const struct nvidia_plan *nvidia_plan)
{
	int r;

	r = nvidia_plan_params(nvidia_plan->plan);
	if (r == 0)
		r = procfs_hide_names(nvidia_plan, PATH_PROC_NVIDIA "/gpus", &nvidia_plan->seen->gpus,
				      procfs_has_address, NULL, "a GPU that was not selected");
	if (r == 0)
		r = procfs_hide_entries(nvidia_plan, PATH_PROC_NVIDIA "/capabilities", procfs_is_gpu, procfs_has_minor,
					NULL, "parts of a GPU that was not selected");
	for (size_t i = 0; i < nvidia_plan->selected_count && r == 0; i++)
		if (nvidia_plan->selected[i]->is_part)
			r = procfs_hide_other_parts(nvidia_plan, nvidia_plan->selected[i]);
	if (r == 0 && (nvidia_plan->capabilities & SCREEN) && nvidia_plan->selected_count > 0)
		r = procfs_add_application_profile(nvidia_plan);
	return r;
}
