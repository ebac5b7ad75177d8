/* SPDX-License-Identifier: Apache-2.0 */

/* The native backend's answers, put together from its parts. */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/paths.h"
#include "driverd/driverd.h"
#include "nvidia/internal.h"
#include "nvidia/nvidia.h"
#include "root/rootfs.h"
#include "system/elf_file.h"
#include "system/noexec.h"

/* Return: NULL. */
static struct nvidia_probe *nvidia_probe_free(struct nvidia_probe *probe)
{
	if (!probe)
		return NULL;
	module_clear(&probe->module);
	strv_clear(&probe->gpus);
	free(probe->parts.items);
	nvidia_cache_close(&probe->known);
	free(probe);
	return NULL;
}

/* A driver as it is now: its module and its files. */
struct native {
	struct module module;
	struct driver_files install;
};

#define NATIVE_NONE ((struct native){.install = {.root = ROOTFS_CLOSED}})

static void backend_close(struct native *native)
{
	driver_files_close(&native->install);
	module_clear(&native->module);
}
#define _cleanup_native_ _cleanup_(backend_close)

/* Return: as module_read() and driver_files_open(). */
static int backend_open(const struct settings *settings, struct native *ret, struct err *err)
{
	int r = module_read(&ret->module, err);

	return r == 0 ? driver_files_open(settings, ret->module.version, NULL, &ret->install, err) : r;
}

static int backend_probe(const struct settings *settings, struct inventory *inventory, void **ret_seen, struct err *err)
{
	struct nvidia_probe *probe = calloc(1, sizeof(*probe));
	int r;

	(void)settings;
	if (!probe)
		return -ENOMEM;
	r = module_read(&probe->module, err);
	if (r == 0)
		r = nvidia_cache_open(&probe->known);
	if (r == 0)
		r = gpus_read(probe, &backend_nvidia, inventory, err);
	if (r == 0)
		*ret_seen = probe;
	else
		nvidia_probe_free(probe);
	return r;
}

static void backend_free_data(void *seen)
{
	nvidia_probe_free(seen);
}

static int backend_plan(const struct settings *settings, void *seen, const struct request *request,
			const struct adapter *const *selected, size_t count, struct plan *ret, struct err *err)
{
	static int (*const parts[])(const struct nvidia_plan *nvidia_plan) = {plan_libraries, plan_files, plan_procfs};
	_cleanup_install_ struct driver_files files = {.root = ROOTFS_CLOSED};
	const struct module *module = &((struct nvidia_probe *)seen)->module;
	struct nvidia_plan nvidia_plan = {
		.settings = settings,
		.seen = seen,
		.module = module,
		.install = &files,
		.capabilities = request->capabilities,
		.selected = selected,
		.selected_count = count,
		.plan = ret,
		.err = err,
	};
	int r;

	r = request->nodes_only ? 0
				: driver_files_open(settings, module->version, &nvidia_plan.seen->known, &files, err);
	if (r == 0)
		r = plan_nodes(&nvidia_plan, request);
	for (size_t i = 0; i < ARRAY_SIZE(parts) && r == 0 && !request->nodes_only; i++)
		r = parts[i](&nvidia_plan);
	if (r == 0 && !request->nodes_only)
		r = driver_files_cache_put(&files, &nvidia_plan.seen->known);
	if (r == 0)
		nvidia_cache_write(&nvidia_plan.seen->known);
	return r == -ENOMEM ? err_set(err, r, "%m") : r;
}

/* ---- facts ---- */

/* Old drivers carry no note, and are asked in a process of their own. What cannot be had is not known. */
static int backend_read_cuda_version(const struct settings *settings, const struct driver_files *files,
				     struct driver_facts *facts)
{
	for (size_t i = 0; i < files->dir_count; i++) {
		const struct driver_files_dir *dir = &files->dirs[i];
		_cleanup_free_ char *path = NULL;
		_cleanup_close_ int fd = -1;
		struct err ignored;
		int r;

		if (dir->is_32)
			continue;
		if (str_format(&path, "%s/libcuda.so.%s", dir->path, files->version) < 0)
			return -ENOMEM;
		fd = openat(dir->fd, strrchr(path, '/') + 1, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
		if (fd < 0)
			continue;
		r = libcuda_read_version(fd, &facts->cuda_major, &facts->cuda_minor);
		if (r < 0 && r != -ENOMEM)
			r = driverd_cuda_version(settings, path, &facts->cuda_major, &facts->cuda_minor, &ignored);
		return r == -ENOMEM ? r : 0;
	}
	return 0;
}

/* What all say alike; NULL if they differ. */
static const char *backend_common_value(const char *first, const char *other)
{
	return first && other && streq(first, other) ? first : NULL;
}

/* Requirements are held against every GPU at once, so what differs between those selected is not known. */
static int backend_facts(const struct settings *settings, void *seen, const struct adapter *const *selected,
			 size_t count, struct driver_facts *ret)
{
	const char *version = ((struct nvidia_probe *)seen)->module.version;
	_cleanup_install_ struct driver_files files = {.root = ROOTFS_CLOSED};
	const char *brand = count ? gpu_brand(selected[0]->name) : NULL;
	const char *architecture = count ? gpu_architecture(selected[0]->device_id) : NULL;
	struct driver_facts known = {0};
	struct err ignored;
	int r;

	for (size_t i = 1; i < count; i++) {
		brand = backend_common_value(brand, gpu_brand(selected[i]->name));
		architecture = backend_common_value(architecture, gpu_architecture(selected[i]->device_id));
	}
	r = driver_files_open(settings, version, &((struct nvidia_probe *)seen)->known, &files, &ignored);
	if (r == 0)
		r = backend_read_cuda_version(settings, &files, &known);
	known.brand = brand ? strdup(brand) : NULL;
	known.architecture = architecture ? strdup(architecture) : NULL;
	known.driver_version = strdup(version);
	if (r == -ENOMEM || !known.driver_version || (brand && !known.brand) || (architecture && !known.architecture)) {
		driver_facts_clear(&known);
		return -ENOMEM;
	}
	*ret = known;
	return 0;
}

/* ---- names ---- */

/* NVML's file, in whichever of the driver's directories it is. */
static int backend_find_nvml(const struct driver_files *files, char **ret)
{
	for (size_t i = 0; i < files->dir_count; i++) {
		_cleanup_free_ char *path = NULL;

		if (files->dirs[i].is_32)
			continue;
		if (str_format(&path, "%s/libnvidia-ml.so.%s", files->dirs[i].path, files->version) < 0)
			return -ENOMEM;
		if (access(path, F_OK) < 0)
			continue;
		*ret = steal_ptr(path);
		return 0;
	}
	return -ENOENT;
}

/* Asks NVML in another process. Return: 0; as driverd_nvml_names(). */
static int backend_ask_names(const struct settings *settings, struct driverd_name **ret, size_t *ret_count,
			     struct err *err)
{
	_cleanup_native_ struct native native = NATIVE_NONE;
	_cleanup_free_ char *library = NULL;
	int r;

	r = backend_open(settings, &native, err);
	if (r == 0)
		r = backend_find_nvml(&native.install, &library);
	/* Without NVML the driver has no such names. */
	if (r == -ENOENT)
		return 0;
	return r == 0 ? driverd_nvml_names(settings, library, true,
					   "Parts of GPUs can be named without it: 0:1, or MIG-GPU-<uuid>/<GPU "
					   "instance>/<compute instance>.",
					   ret, ret_count, err)
		      : r;
}

int nvidia_watch(const struct settings *settings, const char *without, struct driverd_watch *ret, struct err *err)
{
	_cleanup_native_ struct native native = NATIVE_NONE;
	_cleanup_free_ char *library = NULL;
	int r = backend_open(settings, &native, err);

	if (r == CTR_GPU_E_NO_DEVICE)
		return -ENOENT;
	if (r == 0)
		r = backend_find_nvml(&native.install, &library);
	return r == 0 ? driverd_watch_start(settings, library, without, ret, err) : r;
}

/* @ret: the place of what NVML names so; @count: it is not here. Return: 0 or -ENOMEM. */
static int backend_find_named(const struct driverd_name *name, const struct adapter *adapters, size_t count,
			      size_t *ret)
{
	_cleanup_free_ char *known = NULL;
	size_t i = 0;

	if (name->is_part && name->of &&
	    str_format(&known, "MIG-%s/%u/%u", name->of, name->gpu_instance, name->compute_instance) < 0)
		return -ENOMEM;
	for (; i < count; i++) {
		const char *uuid = name->is_part ? known : name->uuid;

		if (adapters[i].backend == &backend_nvidia && adapters[i].is_part == name->is_part &&
		    adapters[i].uuid && uuid && streq(adapters[i].uuid, uuid))
			break;
	}
	*ret = i;
	return 0;
}

static int backend_name_part(const struct driverd_name *name, struct adapter *adapters, size_t count)
{
	size_t place = count;
	int r = name->is_part && name->uuid ? backend_find_named(name, adapters, count, &place) : 0;

	if (r == 0 && place < count && name->profile)
		r = str_replace(&adapters[place].profile, name->profile);
	return r == 0 && place < count ? str_replace(&adapters[place].alias, name->uuid) : r;
}

/* "MIG-<uuid>" is NVML's name of a part, and stands nowhere else. What is known without it is in nvidia/gpu.c. */
static int backend_identify(const struct settings *settings, struct adapter *adapters, size_t count, struct err *err)
{
	struct driverd_name *names = NULL;
	size_t name_count = 0;
	bool nameless = false;
	int r;

	for (size_t i = 0; i < count; i++)
		nameless |= adapters[i].is_part && !adapters[i].alias;
	r = nameless ? backend_ask_names(settings, &names, &name_count, err) : 0;
	for (size_t i = 0; i < name_count && r == 0; i++)
		r = backend_name_part(&names[i], adapters, count);
	driverd_names_free(names, name_count);
	return r;
}

/* ---- use ---- */

static int backend_take_use(const struct driverd_process *processes, size_t process_count, const size_t *places,
			    size_t adapter_count, struct use *use)
{
	int r = 0;

	for (size_t i = 0; i < process_count && r == 0; i++) {
		const struct use_process taken = {
			.adapter = places[processes[i].name],
			.pid = (pid_t)processes[i].pid,
			.computes = processes[i].computes,
			.draws = processes[i].draws,
			.memory = processes[i].memory,   /* what is unknown is the same number */
			.percent = processes[i].percent, /* and here */
		};

		if (taken.adapter < adapter_count && taken.pid > 0)
			r = use_add(use, &taken);
	}
	return r;
}

/* Of a GPU that is divided, only its parts are known. */
static int backend_find_use(const struct settings *settings, const struct adapter *adapters, size_t count,
			    struct use *use, struct err *err)
{
	_cleanup_native_ struct native native = NATIVE_NONE;
	_cleanup_free_ char *library = NULL;
	_cleanup_free_ struct driverd_process *processes = NULL;
	_cleanup_free_ size_t *places = NULL;
	struct driverd_name *names = NULL;
	size_t name_count = 0, process_count = 0;
	int r = backend_open(settings, &native, err);

	if (r == 0)
		r = backend_find_nvml(&native.install, &library);
	/* Without NVML the driver does not tell. */
	if (r != 0)
		return r == -ENOENT ? 0 : r;
	r = driverd_nvml_processes(settings, library, &names, &name_count, &processes, &process_count, err);
	if (r == 0 && !(places = calloc(name_count + 1, sizeof(*places))))
		r = -ENOMEM;
	for (size_t i = 0; i < name_count && r == 0; i++) {
		r = backend_find_named(&names[i], adapters, count, &places[i]);
		if (r == 0 && places[i] < count)
			use->known[places[i]] = names[i].refused == 0;
	}
	if (r == 0)
		r = backend_take_use(processes, process_count, places, count, use);
	driverd_names_free(names, name_count);
	return r;
}

/* ---- remarks ---- */

static int backend_note_noexec(const struct driver_files_libraries *libraries, struct strv *ret)
{
	_cleanup_free_ char *seen = NULL;
	struct plan found = {0};
	int r = 0;

	for (size_t i = 0; i < libraries->count && r == 0; i++)
		r = noexec_check_around(&found, libraries->items[i].path, &seen);
	if (r == 0)
		r = plan_list_obstacles(&found, ret);
	plan_clear(&found);
	return r;
}

static int backend_driver_notes(const struct settings *settings, const struct inventory *inventory, struct strv *ret)
{
	_cleanup_libraries_ struct driver_files_libraries libraries = {0};
	_cleanup_native_ struct native native = NATIVE_NONE;
	char message[ERR_MESSAGE_MAX];
	struct err err = {0};
	int r;

	(void)inventory;
	r = backend_open(settings, &native, &err);
	if (r != 0)
		return r == -ENOMEM ? r : strv_add(ret, err_message(&err, message));
	r = driver_files_libraries(&native.install, CAPABILITY_ALL, &libraries);
	for (size_t i = 0; i < libraries.count && r == 0; i++)
		if (!libraries.items[i].known)
			r = strv_format(ret, "ctr-gpu does not know what %s is for; containers get it with compute",
					libraries.items[i].path);
	if (r == 0)
		r = backend_note_noexec(&libraries, ret);
	return r == -ENOMEM ? r : 0;
}

/* ---- hooks of CDI specs ---- */

/* The GPUs that a container has are those it has nodes of. */
static int backend_plan_own_profile(const struct rootfs *rootfs, struct plan *plan)
{
	unsigned long long minors = 0;

	for (int i = 0; i < NVIDIA_PROFILE_MINORS; i++) {
		char path[32];
		_cleanup_close_ int fd = -1;

		(void)snprintf(path, sizeof(path), PATH_NVIDIA_GPU "%d", i);
		fd = rootfs_open_path(rootfs, path, O_PATH);
		minors |= fd >= 0 ? 1ULL << i : 0;
	}
	return minors ? nvidia_plan_profile(minors, plan) : 0;
}

static int backend_plan_own_params(const struct rootfs *rootfs, struct plan *plan)
{
	(void)rootfs;
	return nvidia_plan_params(plan);
}

static const struct backend_hook hooks[] = {
	{"disable-device-node-modification", backend_plan_own_params},
	{"update-application-profile", backend_plan_own_profile},
	{0},
};

const struct backend backend_nvidia = {.name = "nvidia",
				       .device = PATH_NVIDIACTL,
				       .advice = "NVIDIA on Linux: install the driver, then run ctr-gpu load.",
				       .cache_name = NVIDIA_CACHE_NAME,
				       .part = "MIG",
				       .probe = backend_probe,
				       .free_data = backend_free_data,
				       .plan = backend_plan,
				       .facts = backend_facts,
				       .identify = backend_identify,
				       .driver_notes = backend_driver_notes,
				       .find_use = backend_find_use,
				       .hooks = hooks};
