/* SPDX-License-Identifier: Apache-2.0 */

/* The native backend's answers, put together from its parts. */

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/libcuda.h"
#include "nvidia/brand.h"
#include "nvidia/gpu.h"
#include "nvidia/nvidia.h"
#include "nvidia/plan.h"

static int probe(const struct settings *settings, struct inventory *inventory, struct err *err)
{
	_cleanup_module_ struct module module = {0};
	int r;

	(void)settings;
	r = module_read(&module, err);
	return r != 0 ? r : gpus_read(&module, inventory, err);
}

static int plan(const struct settings *settings, const struct request *request, const struct adapter *const *selected,
		size_t count, struct plan *ret, struct err *err)
{
	static int (*const parts[])(const struct planning *planning) = {plan_libraries, plan_files, plan_procfs};
	_cleanup_install_ struct install install = {.root = ROOTFS_CLOSED};
	_cleanup_module_ struct module module = {0};
	struct planning planning = {
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
	if (r == 0)
		r = install_open(settings, module.version, &install, err);
	if (r == 0)
		r = plan_nodes(&planning, request);
	for (size_t i = 0; i < ARRAY_SIZE(parts) && r == 0; i++)
		r = parts[i](&planning);
	return r == -ENOMEM ? err_set(err, r, "%m") : r;
}

/* ---- facts ---- */

static int read_cuda_version(const struct install *install, struct driver_facts *facts)
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
		return r == -ENOMEM ? r : 0;
	}
	return 0;
}

/* Requirements are held against every GPU at once, so what differs between those selected is not known. */
static int describe_gpus(const struct adapter *const *selected, size_t count, struct driver_facts *facts)
{
	const char *brand = count > 0 ? brand_of(selected[0]->name) : NULL;
	const char *architecture = count > 0 ? architecture_of(selected[0]->device_id) : NULL;

	for (size_t i = 1; i < count; i++) {
		const char *other_brand = brand_of(selected[i]->name), *other = architecture_of(selected[i]->device_id);

		if (!other_brand || (brand && !streq(brand, other_brand)))
			brand = NULL;
		if (!other || (architecture && !streq(architecture, other)))
			architecture = NULL;
	}
	facts->brand = brand ? strdup(brand) : NULL;
	facts->architecture = architecture ? strdup(architecture) : NULL;
	return (brand && !facts->brand) || (architecture && !facts->architecture) ? -ENOMEM : 0;
}

static int facts(const struct settings *settings, const struct adapter *const *selected, size_t count, struct driver_facts *ret)
{
	_cleanup_install_ struct install install = {.root = ROOTFS_CLOSED};
	_cleanup_module_ struct module module = {0};
	struct driver_facts known = {0};
	struct err ignored;
	int r;

	r = module_read(&module, &ignored);
	if (r == 0 && install_open(settings, module.version, &install, &ignored) == 0)
		r = read_cuda_version(&install, &known);
	if (r == 0)
		r = describe_gpus(selected, count, &known);
	known.driver_version = steal_ptr(module.version);
	if (r < 0)
		driver_facts_clear(&known);
	else
		*ret = known;
	return r < 0 ? r : 0;
}

/* ---- remarks ---- */

static int remark_libraries(const struct install *install, struct strv *ret)
{
	_cleanup_libraries_ struct install_libraries libraries = {0};
	int r;

	r = install_libraries(install, CAPABILITY_ALL, &libraries);
	for (size_t i = 0; i < libraries.count && r == 0; i++) {
		char *text = NULL;

		if (libraries.items[i].known)
			continue;
		r = str_format(&text, "ctr-gpu does not know what %s is for; containers get it with compute", libraries.items[i].path);
		if (r == 0)
			r = strv_take(ret, text);
	}
	return r == -ENOMEM ? r : 0;
}

static int remarks(const struct settings *settings, struct strv *ret)
{
	_cleanup_install_ struct install install = {.root = ROOTFS_CLOSED};
	_cleanup_module_ struct module module = {0};
	struct err err = {0};
	int r;

	r = module_read(&module, &err);
	if (r == 0)
		r = install_open(settings, module.version, &install, &err);
	if (r == 0)
		return remark_libraries(&install, ret);
	/* A remark is one line. */
	for (char *end = strchr(err.text, '\n'); end; end = strchr(end, '\n'))
		*end = ';';
	return r == -ENOMEM ? r : strv_add(ret, err.text);
}

const struct backend backend_nvidia = {.name = "nvidia", .probe = probe, .plan = plan, .facts = facts, .remarks = remarks};
