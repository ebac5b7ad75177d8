/* SPDX-License-Identifier: Apache-2.0 */

/* The native backend's answers, put together from its parts. */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "driverd/driverd.h"
#include "model/libcuda.h"
#include "nvidia/brand.h"
#include "nvidia/gpu.h"
#include "nvidia/nvidia.h"
#include "nvidia/plan.h"
#include "root/rootfs.h"

/* As NVML lists them. */
struct driver_part_list {
	struct driverd_mig_part *parts;
	size_t count;
};

static int backend_probe(const struct settings *settings, struct inventory *inventory, struct err *err)
{
	_cleanup_module_ struct module module = {0};
	int r;

	(void)settings;
	r = module_read(&module, err);
	return r != 0 ? r : gpus_read(&module, inventory, err);
}

static int backend_plan(const struct settings *settings, const struct request *request,
			const struct adapter *const *selected, size_t count, struct plan *ret, struct err *err)
{
	static int (*const parts[])(const struct planning *planning) = {plan_libraries, plan_files, plan_procfs};
	_cleanup_install_ struct install install = {.root = ROOTFS_CLOSED};
	_cleanup_module_ struct module module = {0};
	struct planning planning = {
		.settings = settings,
		.module = &module,
		.install = &install,
		.capabilities = request->capabilities,
		.selected = selected,
		.selected_count = count,
		.plan = ret,
		.err = err,
	};
	int r;

	r = module_read(&module, err);
	if (r == 0 && !request->nodes_only)
		r = install_open(settings, module.version, &install, err);
	if (r == 0)
		r = plan_nodes(&planning, request);
	if (request->nodes_only)
		return r == -ENOMEM ? err_set(err, r, "%m") : r;
	for (size_t i = 0; i < ARRAY_SIZE(parts) && r == 0; i++)
		r = parts[i](&planning);
	return r == -ENOMEM ? err_set(err, r, "%m") : r;
}

/* ---- facts ---- */

/* Old drivers carry no note, and are asked in a process of their own. What cannot be had is not known. */
static int backend_ask_cuda_version(const struct settings *settings, const struct install_dir *dir, const char *name,
				    struct driver_facts *facts)
{
	_cleanup_free_ char *path = NULL;
	struct err ignored;
	int r;

	if (str_format(&path, "%s/%s", dir->path, name) < 0)
		return -ENOMEM;
	r = driverd_cuda_version(settings, path, &facts->cuda_major, &facts->cuda_minor, &ignored);
	return r == -ENOMEM ? r : 0;
}

static int backend_read_cuda_version(const struct settings *settings, const struct install *install,
				     struct driver_facts *facts)
{
	for (size_t i = 0; i < install->dir_count; i++) {
		_cleanup_free_ char *name = NULL;
		_cleanup_close_ int fd = -1;
		int r;

		if (install->dirs[i].is_32)
			continue;
		if (str_format(&name, "libcuda.so.%s", install->version) < 0)
			return -ENOMEM;
		fd = openat(install->dirs[i].fd, name, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
		if (fd < 0)
			continue;
		r = libcuda_read_version(fd, &facts->cuda_major, &facts->cuda_minor);
		return r == 0 || r == -ENOMEM ? r : backend_ask_cuda_version(settings, &install->dirs[i], name, facts);
	}
	return 0;
}

static const char *backend_gpu_brand(const struct adapter *gpu)
{
	return brand_of(gpu->name);
}

static const char *backend_gpu_architecture(const struct adapter *gpu)
{
	return architecture_of(gpu->device_id);
}

/* Requirements are held against every GPU at once, so what differs between those selected is not known. */
static int backend_shared_property(const struct adapter *const *selected, size_t count,
				   const char *(*property)(const struct adapter *gpu), char **ret)
{
	const char *shared = count > 0 ? property(selected[0]) : NULL;

	for (size_t i = 1; i < count && shared; i++) {
		const char *other = property(selected[i]);

		if (!other || !streq(shared, other))
			shared = NULL;
	}
	*ret = shared ? strdup(shared) : NULL;
	return shared && !*ret ? -ENOMEM : 0;
}

static int backend_facts(const struct settings *settings, const struct adapter *const *selected, size_t count,
			 struct driver_facts *ret)
{
	_cleanup_install_ struct install install = {.root = ROOTFS_CLOSED};
	_cleanup_module_ struct module module = {0};
	struct driver_facts known = {0};
	struct err ignored;
	int r;

	r = module_read(&module, &ignored);
	if (r == 0 && install_open(settings, module.version, &install, &ignored) == 0)
		r = backend_read_cuda_version(settings, &install, &known);
	if (r == 0)
		r = backend_shared_property(selected, count, backend_gpu_brand, &known.brand);
	if (r == 0)
		r = backend_shared_property(selected, count, backend_gpu_architecture, &known.architecture);
	known.driver_version = steal_ptr(module.version);
	if (r < 0)
		driver_facts_clear(&known);
	else
		*ret = known;
	return r < 0 ? r : 0;
}

/* ---- names ---- */

/* NVML's file, in whichever of the driver's directories it is. */
static int backend_find_nvml(const struct install *install, char **ret)
{
	for (size_t i = 0; i < install->dir_count; i++) {
		_cleanup_free_ char *path = NULL;

		if (install->dirs[i].is_32)
			continue;
		if (str_format(&path, "%s/libnvidia-ml.so.%s", install->dirs[i].path, install->version) < 0)
			return -ENOMEM;
		if (access(path, F_OK) < 0)
			continue;
		*ret = steal_ptr(path);
		return 0;
	}
	return -ENOENT;
}

static int backend_format_part(const struct driverd_mig_part *part, char **ret)
{
	return str_format(ret, "MIG-%s/%u/%u", part->gpu_uuid, part->gpu_instance, part->compute_instance);
}

static int backend_name_part(const struct driver_part_list *list, const char *device, char **ret)
{
	for (size_t i = 0; i < list->count; i++)
		if (strcasecmp(list->parts[i].uuid, device) == 0)
			return backend_format_part(&list->parts[i], ret);
	return CTR_GPU_E_UNKNOWN_DEVICE;
}

/* Asks NVML in another process. Return: 0; CTR_GPU_E_UNKNOWN_DEVICE if this host has none; as driverd_nvml_parts(). */
static int backend_list_parts(const struct settings *settings, struct driver_part_list *ret, struct err *err)
{
	_cleanup_install_ struct install install = {.root = ROOTFS_CLOSED};
	_cleanup_module_ struct module module = {0};
	_cleanup_free_ char *library = NULL;
	int r;

	r = module_read(&module, err);
	if (r == 0)
		r = install_open(settings, module.version, &install, err);
	if (r == 0)
		r = backend_find_nvml(&install, &library);
	if (r == -ENOENT)
		return CTR_GPU_E_UNKNOWN_DEVICE;
	return r == 0 ? driverd_nvml_parts(settings, library, &ret->parts, &ret->count, err) : r;
}

/* "MIG-<uuid>" is NVML's name of a part, and stands nowhere else. */
static int backend_translate(const struct settings *settings, const char *device, char **ret, struct err *err)
{
	struct driver_part_list list = {0};
	int r;

	if (strncasecmp(device, "MIG-", strlen("MIG-")) != 0 || strchr(device, '/'))
		return CTR_GPU_E_UNKNOWN_DEVICE;
	r = backend_list_parts(settings, &list, err);
	if (r == 0)
		r = backend_name_part(&list, device, ret);
	driverd_parts_free(list.parts, list.count);
	return r;
}

static int backend_aliases(const struct settings *settings, struct strv *ret)
{
	struct driver_part_list list = {0};
	struct err ignored;
	int r;

	r = backend_list_parts(settings, &list, &ignored);
	for (size_t i = 0; i < list.count && r == 0; i++) {
		char *name = NULL;

		r = strv_add(ret, list.parts[i].uuid);
		if (r == 0)
			r = backend_format_part(&list.parts[i], &name);
		if (r == 0)
			r = strv_take(ret, name);
	}
	driverd_parts_free(list.parts, list.count);
	return r == -ENOMEM ? r : 0;
}

/* ---- remarks ---- */

static int backend_remark_libraries(const struct install *install, struct strv *ret)
{
	_cleanup_libraries_ struct install_libraries libraries = {0};
	int r;

	r = install_libraries(install, CAPABILITY_ALL, &libraries);
	for (size_t i = 0; i < libraries.count && r == 0; i++)
		if (!libraries.items[i].known)
			r = strv_format(ret, "ctr-gpu does not know what %s is for; containers get it with compute",
					libraries.items[i].path);
	return r == -ENOMEM ? r : 0;
}

static int backend_remarks(const struct settings *settings, struct strv *ret)
{
	_cleanup_install_ struct install install = {.root = ROOTFS_CLOSED};
	_cleanup_module_ struct module module = {0};
	struct err err = {0};
	int r;

	r = module_read(&module, &err);
	if (r == 0)
		r = install_open(settings, module.version, &install, &err);
	if (r == 0)
		return backend_remark_libraries(&install, ret);
	return r == -ENOMEM ? r : strv_add(ret, err.text);
}

/* ---- hooks of CDI specs ---- */

/* The GPUs that a container has are those it has nodes of. */
static int backend_plan_own_profile(const struct rootfs *rootfs, struct plan *plan)
{
	unsigned long long minors = 0;

	for (int i = 0; i < NVIDIA_PROFILE_MINORS; i++) {
		char path[32];
		_cleanup_close_ int fd = -1;

		(void)snprintf(path, sizeof(path), "/dev/nvidia%d", i);
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
				       .device = "/dev/nvidiactl",
				       .advice = "Elsewhere: install NVIDIA's driver for Linux, then run ctr-gpu load.",
				       .part = "MIG",
				       .probe = backend_probe,
				       .plan = backend_plan,
				       .facts = backend_facts,
				       .translate = backend_translate,
				       .aliases = backend_aliases,
				       .remarks = backend_remarks,
				       .hooks = hooks};
