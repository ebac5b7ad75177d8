/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Loaders of Nix and Guix read no /etc/ld.so.cache, and find libraries by LD_LIBRARY_PATH alone. It goes before the
 * paths in programs, so that only directories are in it in which everything belongs to the driver; and behind what the
 * container has in it already, which is somebody's choice.
 */

#include "lib/plan_fit.h"

#include <errno.h>
#include <string.h>

#include "ldcache/loader.h"
#include "lib/bundle.h"
#include "lib/container.h"
#include "lib/context.h"
#include "lib/plan.h"

#define VARIABLE "LD_LIBRARY_PATH"

/* What the variable should be, and who needs it. */
struct fit {
	const char *who; /* NULL: the container needs nothing more */
	char *value;
};

static void plan_fit_clear(struct fit *fit)
{
	free(fit->value);
}
#define _cleanup_fit_ _cleanup_(plan_fit_clear)

static int plan_fit_list_missing(const struct plan *plan, const struct strv *path, struct strv *ret)
{
	int r = 0;

	for (size_t i = 0; i < plan->library_dir_count && r == 0; i++)
		if (plan->library_dirs[i].overrides_image && !strv_contains(path, plan->library_dirs[i].path))
			r = strv_add(ret, plan->library_dirs[i].path);
	return r;
}

static int plan_fit_new(const struct plan *plan, const struct rootfs *rootfs, const struct strv *environment,
			struct fit *ret)
{
	const char *who = plan->library_dir_count > 0 ? loader_with_own_cache(rootfs) : NULL;
	const char *old = who ? strv_variable(environment, VARIABLE) : NULL;
	_cleanup_strv_ struct strv path = {0}, missing = {0};
	_cleanup_free_ char *added = NULL;
	int r;

	*ret = (struct fit){0};
	if (!who)
		return 0;
	r = strv_split(old ? old : "", ":", &path);
	if (r == 0)
		r = plan_fit_list_missing(plan, &path, &missing);
	if (r == 0)
		r = strv_join(&missing, ":", &added);
	if (r < 0 || missing.count == 0)
		return r;
	ret->who = who;
	return str_format(&ret->value, "%s%s%s", old ? old : "", old && *old ? ":" : "", added);
}

static int plan_fit_describe(const struct fit *fit, char **ret)
{
	return str_format(ret,
			  "programs that %s built read no /etc/ld.so.cache: start the container with "
			  "-e " VARIABLE "=%s, or through ctr-gpu-runtime, which sets it",
			  fit->who, fit->value);
}

int plan_fit_warn(const struct plan *plan, const struct rootfs *rootfs, const struct strv *environment,
		  const struct log *log)
{
	_cleanup_free_ char *text = NULL;
	_cleanup_fit_ struct fit fit;
	int r = plan_fit_new(plan, rootfs, environment, &fit);

	if (r < 0 || !fit.who)
		return r;
	r = plan_fit_describe(&fit, &text);
	if (r == 0)
		log_warning(log, "%s", text);
	return r;
}

int ctr_gpu_plan_fit_container(struct ctr_gpu_plan *plan, const struct ctr_gpu_container *container)
{
	_cleanup_rootfs_ struct rootfs rootfs = ROOTFS_CLOSED;
	_cleanup_fit_ struct fit fit;
	char *text = NULL;
	int r;

	/* Whether there is one, applying the plan finds out. */
	if (container_open_rootfs(container, &rootfs, NULL) != 0)
		return 0;
	r = plan_fit_new(&plan->data, &rootfs, &container->config.environment, &fit);
	if (r < 0 || !fit.who)
		return r;
	r = plan_fit_describe(&fit, &text);
	return r < 0 ? r : strv_take(&plan->data.warnings, text);
}

int ctr_gpu_plan_fit_bundle(struct ctr_gpu_plan *plan, const struct ctr_gpu_bundle *bundle)
{
	struct plan_env variable = {.name = strdup(VARIABLE)};
	_cleanup_rootfs_ struct rootfs rootfs = ROOTFS_CLOSED;
	_cleanup_fit_ struct fit fit = {0};
	int r = rootfs_open(bundle->directory, bundle->config.root, &rootfs);

	r = r < 0 ? 0 : plan_fit_new(&plan->data, &rootfs, &bundle->config.environment, &fit);
	if (r == 0 && fit.who)
		r = str_format(&variable.reason, "programs that %s built read no /etc/ld.so.cache", fit.who);
	if (r < 0 || !fit.who) {
		free(variable.name);
		return r;
	}
	variable.value = steal_ptr(fit.value);
	return plan_add_env(&plan->data, &variable);
}
