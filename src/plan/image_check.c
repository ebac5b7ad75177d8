/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What depends on the container that gets a plan: its variables, and the libraries of its image that the driver's
 * libraries outrank. A hook runs too late to set variables, so it says what they should be.
 *
 * Loaders of Nix and Guix do not read /etc/ld.so.cache and find libraries by LD_LIBRARY_PATH alone. Loaders search it
 * before the paths in programs, so it gets only directories that hold nothing but the driver's files. They are put
 * behind the directories that the container already has in it, since the image or the user chose those.
 */

#include "plan/plan.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/span.h"
#include "ctr-gpu-error.h"
#include "ldcache/ldcache.h"
#include "ldcache/loader.h"
#include "lib/container.h"
#include "root/mount.h"

#define VARIABLE "LD_LIBRARY_PATH"

/* ---- variables ---- */

static int image_check_list_missing(const struct plan *plan, const struct strv *path, struct strv *ret)
{
	int r = 0;

	for (size_t i = 0; i < plan->library_dir_count && r == 0; i++)
		if (plan->library_dirs[i].overrides_image && !strv_contains(path, plan->library_dirs[i].path))
			r = strv_add(ret, plan->library_dirs[i].path);
	return r;
}

/* Return: 0, with @ret untouched if nothing is to be added to @old; -ENOMEM. */
static int image_check_join_path(const struct plan *plan, const char *old, char **ret)
{
	_cleanup_strv_ struct strv path = {0}, missing = {0};
	_cleanup_free_ char *added = NULL;
	int r;

	r = strv_split(old, ":", &path);
	if (r == 0)
		r = image_check_list_missing(plan, &path, &missing);
	if (r == 0)
		r = strv_join(&missing, ":", &added);
	if (r < 0 || missing.count == 0)
		return r;
	return str_format(ret, "%s%s%s", old, *old ? ":" : "", added);
}

/* Adds LD_LIBRARY_PATH to @ret, where the container needs it for what is in @plan. */
static int image_check_add_path(const struct plan *plan, const struct rootfs *rootfs, const struct strv *environment,
				struct plan *ret)
{
	const char *who = plan->library_dir_count > 0 ? loader_with_own_cache(rootfs) : NULL;
	const char *old = strv_variable(environment, VARIABLE);
	struct plan_env variable = {.replaces = true};
	int r;

	if (!who)
		return 0;
	r = image_check_join_path(plan, old ? old : "", &variable.value);
	if (r < 0 || !variable.value)
		return r;
	variable.name = strdup(VARIABLE);
	/* Without memory the reason stays NULL, which the list refuses. */
	(void)str_format(&variable.reason, "programs that %s built read no /etc/ld.so.cache", who);
	return plan_add_env(ret, &variable);
}

static int image_check_describe(const struct plan_env *env, char **ret)
{
	const char *quote = strpbrk(env->value, " ()") ? "\"" : "";

	return str_format(ret, "%s: start the container with -e %s%s=%s%s, or through ctr-gpu-runtime, which sets it",
			  env->reason, quote, env->name, env->value, quote);
}

static int image_check_log_missing(const struct plan *plan, const struct strv *environment, const struct log *log)
{
	for (size_t i = 0; i < plan->env_count; i++) {
		_cleanup_free_ char *text = NULL;

		if (!plan_env_is_missing(&plan->env[i], environment))
			continue;
		if (image_check_describe(&plan->env[i], &text) < 0)
			return -ENOMEM;
		log_warning(log, "%s", text);
	}
	return 0;
}

/* ---- groups ---- */

/*
 * Appends a sentence for each group by which nodes are opened and which the container's process has not.
 * Return: 0 or -ENOMEM.
 */
static int image_check_list_groups(const struct plan *plan, const struct oci_config *config, struct strv *ret)
{
	_cleanup_strv_ struct strv told = {0};
	int r = 0;

	for (size_t i = 0; i < plan->device_count && r == 0 && config->user != 0; i++) {
		const struct plan_device *device = &plan->devices[i];
		char group[16];

		(void)snprintf(group, sizeof(group), "%u", device->group);
		if (!device->group || strv_contains(&config->groups, group) || strv_contains(&told, group))
			continue;
		r = strv_format(ret,
				"%s is for root and group %s, and user %u of the container is in it not yet: start the "
				"container with --group-add %s, or through ctr-gpu-runtime, or by CDI with a spec that "
				"'ctr-gpu cdi generate --groups' wrote",
				device->path, group, config->user, group);
		if (r == 0)
			r = strv_add(&told, group);
	}
	return r;
}

int image_check_warn(const struct plan *plan, const struct rootfs *rootfs, const struct oci_config *config,
		     const struct log *log)
{
	_cleanup_strv_ struct strv groups = {0};
	struct plan own = {0};
	int r;

	if (!log->sink)
		return 0;
	r = image_check_add_path(plan, rootfs, &config->environment, &own);
	if (r == 0)
		r = image_check_log_missing(plan, &config->environment, log);
	if (r == 0)
		r = image_check_log_missing(&own, &config->environment, log);
	plan_clear(&own);
	if (r == 0)
		r = image_check_list_groups(plan, config, &groups);
	for (size_t i = 0; i < groups.count && r == 0; i++)
		log_warning(log, "%s", groups.items[i]);
	return r;
}

/* ---- libraries ---- */

/* The container may have been given GPUs already. */
static bool image_check_is_from_plan(const struct plan *plan, const char *path)
{
	for (size_t i = 0; i < plan->library_dir_count; i++)
		if (str_is_below(path, plan->library_dirs[i].path))
			return true;
	return false;
}

static int image_check_add_override(struct plan *plan, const struct span *cache, const struct plan_library_dir *dir)
{
	int r = 0;

	for (size_t i = 0; i < dir->libraries.count && r == 0; i++) {
		const char *name = dir->libraries.items[i], *path = ldcache_find(cache, name);
		struct plan_override override = {0};

		if (!path || image_check_is_from_plan(plan, path))
			continue;
		override.path = strdup(path);
		(void)str_format(&override.by, "%s/%s", dir->path, name);
		(void)str_format(&override.reason, "programs that ask for %s get the driver's", name);
		r = plan_add_override(plan, &override);
	}
	return r;
}

/* Without a loader cache, the image's libraries are not known. */
static int image_check_read_override(struct plan *plan, const struct rootfs *rootfs)
{
	_cleanup_free_ char *data = NULL;
	struct span cache;
	size_t size;
	int r = 0;

	if (loader_read_cache(rootfs, &data, &size) < 0)
		return 0;
	cache = (struct span){(const unsigned char *)data, size};
	for (size_t i = 0; i < plan->library_dir_count && r == 0; i++)
		if (plan->library_dirs[i].overrides_image)
			r = image_check_add_override(plan, &cache, &plan->library_dirs[i]);
	return r;
}

/* ---- obstacles ---- */

static bool image_check_has_file(const struct rootfs *rootfs, const char *path)
{
	_cleanup_close_ int fd = rootfs_open_path(rootfs, path, O_PATH);
	struct stat st;

	return fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0;
}

static bool image_check_has_in(const struct rootfs *rootfs, const char *directory, const char *name)
{
	_cleanup_free_ char *path = NULL;

	return directory[0] == '/' && str_format(&path, "%s/%s", directory, name) == 0 &&
	       image_check_has_file(rootfs, path);
}

static bool image_check_has_cached(const struct rootfs *rootfs, const char *name)
{
	_cleanup_free_ char *data = NULL;
	const char *path;
	size_t size;

	if (loader_read_cache(rootfs, &data, &size) < 0)
		return false;
	path = ldcache_find(&(struct span){(const unsigned char *)data, size}, name);
	return path && image_check_has_file(rootfs, path);
}

/* Return: 1 if the image has the library; 0; -ENOMEM. */
static int image_check_has_library(const struct rootfs *rootfs, const char *name, const struct strv *environment)
{
	const char *variable = strv_variable(environment, VARIABLE);
	_cleanup_strv_ struct strv path = {0};

	for (const char *const *directory = ldcache_directories; *directory; directory++)
		if (image_check_has_in(rootfs, *directory, name))
			return 1;
	if (variable && strv_split(variable, ":", &path) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < path.count; i++)
		if (image_check_has_in(rootfs, path.items[i], name))
			return 1;
	return image_check_has_cached(rootfs, name);
}

int image_check_obstacles(const struct plan *plan, const struct rootfs *rootfs, const struct strv *environment,
			  struct err *err)
{
	for (size_t i = 0; i < plan->obstacle_count; i++) {
		const struct plan_obstacle *obstacle = &plan->obstacles[i];
		int r = obstacle->library ? image_check_has_library(rootfs, obstacle->library, environment) : 0;

		if (r < 0)
			return err_set(err, r, "%m");
		if (r == 0)
			return err_set_advised(err, CTR_GPU_E_DRIVER_LIBRARY, ("%s", obstacle->reason),
					       ("%s", obstacle->remedy));
	}
	return 0;
}

static int image_check_refuse(struct ctr_gpu_plan *plan, const struct rootfs *rootfs, const struct strv *environment)
{
	struct err unused = {0};
	int r = image_check_obstacles(&plan->data, rootfs, environment, plan->context ? &plan->context->err : &unused);

	if (r == 0)
		plan_drop_obstacles(&plan->data);
	return r;
}

/* ---- the plan ---- */

/* The path depends on this container; the other variables are in every plan. */
static int image_check_warn_of_path(struct plan *plan, const struct rootfs *rootfs, const struct strv *environment)
{
	struct plan path = {0};
	char *text = NULL;
	int r = image_check_add_path(plan, rootfs, environment, &path);

	if (r == 0 && path.env_count > 0)
		r = image_check_describe(&path.env[0], &text);
	if (r == 0 && text)
		r = strv_take(&plan->warnings, text);
	plan_clear(&path);
	return r;
}

int ctr_gpu_plan_fit_container(struct ctr_gpu_plan *plan, const struct ctr_gpu_container *container)
{
	_cleanup_close_ int fds = mount_open_proc_self_fd(-1);
	_cleanup_rootfs_ struct rootfs rootfs = ROOTFS_CLOSED;
	int r;

	plan_drop_env(&plan->data, &container->config.environment);
	/* Applying the plan finds out whether it exists. */
	if (container_open_rootfs(container, &rootfs, NULL) != 0)
		return 0;
	rootfs.proc_self_fd = fds;
	r = image_check_refuse(plan, &rootfs, &container->config.environment);
	if (r == 0)
		r = image_check_warn_of_path(&plan->data, &rootfs, &container->config.environment);
	if (r == 0)
		r = image_check_list_groups(&plan->data, &container->config, &plan->data.warnings);
	return r == 0 ? image_check_read_override(&plan->data, &rootfs) : r;
}

/* Return: whether there is a root; applying the plan says why there is none. */
static bool image_check_open_bundle(const struct ctr_gpu_bundle *bundle, int fds, struct rootfs *ret)
{
	if (container_open_bundle_root(bundle, ret, NULL) != 0)
		return false;
	ret->proc_self_fd = fds;
	return true;
}

int ctr_gpu_plan_fit_bundle(struct ctr_gpu_plan *plan, const struct ctr_gpu_bundle *bundle)
{
	_cleanup_close_ int fds = mount_open_proc_self_fd(-1);
	_cleanup_rootfs_ struct rootfs rootfs = ROOTFS_CLOSED;
	int r;

	plan_drop_env(&plan->data, &bundle->config.environment);
	if (!image_check_open_bundle(bundle, fds, &rootfs))
		return 0;
	r = image_check_refuse(plan, &rootfs, &bundle->config.environment);
	return r == 0 ? image_check_add_path(&plan->data, &rootfs, &bundle->config.environment, &plan->data) : r;
}

int ctr_gpu_plan_find_outranked(struct ctr_gpu_plan *plan, const struct ctr_gpu_bundle *bundle)
{
	_cleanup_close_ int fds = mount_open_proc_self_fd(-1);
	_cleanup_rootfs_ struct rootfs rootfs = ROOTFS_CLOSED;

	return image_check_open_bundle(bundle, fds, &rootfs) ? image_check_read_override(&plan->data, &rootfs) : 0;
}
