/* SPDX-License-Identifier: Apache-2.0 */

/*
 * /proc/driver/nvidia shows every GPU in every container, since it is the kernel's. A container is to see its own: the
 * directories of others are covered. And the driver's libraries make missing device nodes themselves where params says
 * "ModifyDeviceFiles: 1", which must not happen in a container.
 */

#include <dirent.h>
#include <errno.h>
#include <string.h>

#include "nvidia/mig.h"
#include "nvidia/nvidia.h"
#include "nvidia/plan.h"
#include "nvidia/proc.h"

enum { SCREEN = CAPABILITY_GRAPHICS | CAPABILITY_DISPLAY };

int nvidia_plan_params(struct plan *plan)
{
	struct plan_file file = {.target = strdup(NVIDIA_PROC "/params"),
				 .on_procfs = true,
				 .reason =
					 strdup("the driver's libraries make no device nodes (ModifyDeviceFiles: 0)")};
	_cleanup_free_ char *text = NULL;
	int r;

	r = module_read_file(NVIDIA_PROC "/params", &text);
	if (r == 0)
		r = proc_set_field(text, "ModifyDeviceFiles", "0", &file.content);
	if ((r == -ENOMEM || r == 0) && file.content && file.target)
		return plan_add_file(plan, &file);
	free(file.target);
	free(file.content);
	free(file.reason);
	return r == -ENOMEM || r == 0 ? -ENOMEM : 0;
}

static int procfs_hide(const struct planning *planning, const char *directory, const char *name, const char *reason)
{
	struct plan_hidden hidden = {.reason = strdup(reason)};

	if (str_format(&hidden.path, "%s/%s", directory, name) < 0)
		hidden.path = NULL;
	return plan_add_hidden(planning->plan, &hidden);
}

/* Covers the entries of a directory that are of a kind and not wanted. */
static int procfs_hide_entries(const struct planning *planning, const char *directory,
			       bool (*is_kind)(const char *name),
			       bool (*is_wanted)(const struct adapter *adapter, const char *name), const char *reason)
{
	DIR *entries = opendir(directory);
	const struct dirent *entry;
	int r = 0;

	while (entries && r == 0 && (entry = readdir(entries))) {
		bool wanted = !is_kind(entry->d_name);

		for (size_t i = 0; i < planning->selected_count && !wanted; i++)
			wanted = is_wanted(planning->selected[i], entry->d_name);
		if (!wanted)
			r = procfs_hide(planning, directory, entry->d_name, reason);
	}
	if (entries)
		(void)closedir(entries);
	return r;
}

static bool procfs_is_number_behind(const char *name, const char *prefix)
{
	size_t length = strlen(prefix);

	return str_has_prefix(name, prefix) && name[length] &&
	       strspn(name + length, "0123456789") == strlen(name + length);
}

static bool procfs_has_address(const struct adapter *adapter, const char *name)
{
	return adapter->pci_address && streq(adapter->pci_address, name);
}

static bool procfs_is_gpu(const char *name)
{
	return procfs_is_number_behind(name, "gpu");
}

static bool procfs_has_minor(const struct adapter *adapter, const char *name)
{
	return adapter->minor == atoi(name + strlen("gpu"));
}

/* Beside a selected part of a GPU, the GPU's other parts. */
static int procfs_hide_other_parts(const struct planning *planning, const struct adapter *part)
{
	_cleanup_free_ char *directory = NULL;
	const struct dirent *entry;
	DIR *entries;
	int r = 0;

	if (str_format(&directory, NVIDIA_PROC "/capabilities/gpu%d/mig", part->minor) < 0)
		return -ENOMEM;
	entries = opendir(directory);
	while (entries && r == 0 && (entry = readdir(entries))) {
		bool wanted = !procfs_is_number_behind(entry->d_name, "gi");

		for (size_t i = 0; i < planning->selected_count && !wanted; i++) {
			const struct adapter *selected = planning->selected[i];

			wanted = selected->minor == part->minor &&
				 (!selected->is_part || selected->gpu_instance == atoi(entry->d_name + strlen("gi")));
		}
		if (!wanted)
			r = procfs_hide(planning, directory, entry->d_name, "a part of the GPU that was not selected");
	}
	if (entries)
		(void)closedir(entries);
	return r;
}

static int procfs_add_application_profile(const struct planning *planning)
{
	unsigned long long minors = 0;

	for (size_t i = 0; i < planning->selected_count; i++)
		if (planning->selected[i]->minor < NVIDIA_PROFILE_MINORS)
			minors |= 1ULL << planning->selected[i]->minor;
	return nvidia_plan_profile(minors, planning->plan);
}

int nvidia_plan_profile(unsigned long long minors, struct plan *plan)
{
	struct plan_file file = {.reason = strdup("EGL shows the selected GPUs only")};

	file.target = strdup("/etc/nvidia/nvidia-application-profiles-rc.d/10-container.conf");
	if (str_format(
		    &file.content,
		    "{\"profiles\": [{\"name\": \"_container_\", \"settings\": [\"EGLVisibleDGPUDevices\", 0x%llx]}],\n"
		    " \"rules\": [{\"pattern\": [], \"profile\": \"_container_\"}]}\n",
		    minors) < 0)
		file.content = NULL;
	if (file.target && file.content)
		return plan_add_file(plan, &file);
	free(file.target);
	free(file.content);
	free(file.reason);
	return -ENOMEM;
}

int plan_procfs(const struct planning *planning)
{
	int r;

	r = nvidia_plan_params(planning->plan);
	if (r == 0)
		r = procfs_hide_entries(planning, NVIDIA_PROC "/gpus", proc_is_pci_address, procfs_has_address,
					"a GPU that was not selected");
	if (r == 0)
		r = procfs_hide_entries(planning, NVIDIA_PROC "/capabilities", procfs_is_gpu, procfs_has_minor,
					"parts of a GPU that was not selected");
	for (size_t i = 0; i < planning->selected_count && r == 0; i++)
		if (planning->selected[i]->is_part)
			r = procfs_hide_other_parts(planning, planning->selected[i]);
	if (r == 0 && (planning->capabilities & SCREEN) && planning->selected_count > 0)
		r = procfs_add_application_profile(planning);
	return r;
}
