/* SPDX-License-Identifier: Apache-2.0 */

#include "wsl/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/paths.h"
#include "base/str.h"
#include "ctr-gpu-error.h"
#include "ldcache/ldcache.h"

#define LIBRARY "libdxcore.so"

/* Return: 1 with @ret set, 0 if it is not there, or -ENOMEM. */
static int dxcore_try_path(const char *path, char **ret)
{
	if (access(path, F_OK) < 0)
		return 0;
	*ret = strdup(path);
	return *ret ? 1 : -ENOMEM;
}

static int dxcore_try_directory(const char *directory, char **ret)
{
	_cleanup_free_ char *path = NULL;
	int r;

	r = str_format(&path, "%s/" LIBRARY, directory);
	return r < 0 ? r : dxcore_try_path(path, ret);
}

int dxcore_find(const struct settings *settings, char **ret)
{
	_cleanup_free_ char *cached = NULL;
	char *path = NULL;
	int r;

	/* A cache that is missing or broken is like one without the library. */
	r = ldcache_find_here(LIBRARY, &cached);
	if (r == 0 && cached)
		r = dxcore_try_path(cached, &path);
	for (const char *const *directory = ldcache_directories; *directory && r == 0; directory++)
		r = dxcore_try_directory(*directory, &path);
	if (r == 0)
		r = dxcore_try_directory(PATH_WSL_LIB, &path);
	for (size_t i = 0; i < settings->library_dirs.count && r == 0; i++)
		r = dxcore_try_directory(settings->library_dirs.items[i], &path);
	if (r < 0)
		return r;
	*ret = path;
	return 0;
}

/* ---- loaders ---- */

const char *loaders_remedy(const char *file, bool wsl)
{
	if (wsl)
		return "Run wsl --shutdown in Windows; if that does not help, install the GPU's driver there again.";
	if (file && streq(file, "libdxcore.so"))
		return "Copy libdxcore.so, libd3d12.so and libd3d12core.so to it from "
		       "C:\\Program Files\\WSL\\lib of a Windows host.";
	return "Copy the whole directory from the host again: from DriverStore\\FileRepository, and "
	       "lxss\\lib for " PATH_WSL_LIB ".";
}

/* A file that only root may read, or that a file system does not show now, is not a defect: others may see it. */
static const char *loaders_defect(const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return errno == ENOENT || errno == ELOOP || errno == ENOTDIR ? "is missing" : NULL;
	return S_ISREG(st.st_mode) && st.st_size > 0 ? NULL : "is empty";
}

static const struct loader {
	const char *name, *path, *who;
} loaders[] = {
	{LIBRARY, PATH_WSL_LIB "/" LIBRARY, "no program finds a GPU"},
	{"libcuda.so.1", PATH_WSL_LIB "/libcuda.so.1", "no CUDA program finds a GPU"},
};

static int loaders_refuse(const struct loader *loader, const char *defect, struct err *err)
{
	return err_set_advised(err, CTR_GPU_E_DRIVER_LIBRARY,
			       ("%s %s, and without it %s", loader->path, defect, loader->who),
			       ("%s", loaders_remedy(loader->name, wsl_version() != WSL_NONE)));
}

int loaders_check(bool nvidia, struct err *err)
{
	for (size_t i = 0; i < (nvidia ? 2 : 1); i++) {
		const char *defect = loaders_defect(loaders[i].path);

		if (defect)
			return loaders_refuse(&loaders[i], defect, err);
	}
	return 0;
}

/* Whichever libdxcore it is, it asks the device. A defective file would be found before the image's own. */
static bool loaders_may_be_of_image(const struct loader *loader)
{
	struct stat st;

	return streq(loader->name, LIBRARY) && lstat(loader->path, &st) < 0;
}

static int loaders_add_obstacle(const struct loader *loader, const char *defect, struct plan *plan)
{
	struct plan_obstacle obstacle = {
		.path = strdup(loader->path),
		.library = strdup(loader->name),
		.remedy = strdup(loaders_remedy(loader->name, wsl_version() != WSL_NONE)),
	};

	if (!obstacle.library)
		free(obstacle.path), obstacle.path = NULL;
	(void)str_format(&obstacle.reason, "%s %s, and without it %s", loader->path, defect, loader->who);
	return plan_add_obstacle(plan, &obstacle);
}

int loaders_plan(bool nvidia, struct plan *plan, struct err *err)
{
	int r = 0;

	for (size_t i = 0; i < (nvidia ? 2 : 1) && r == 0; i++) {
		const char *defect = loaders_defect(loaders[i].path);

		if (defect)
			r = loaders_may_be_of_image(&loaders[i]) ? loaders_add_obstacle(&loaders[i], defect, plan)
								 : loaders_refuse(&loaders[i], defect, err);
	}
	return r;
}

/* ---- version ---- */

/* WSL mounts the stores; in other guests they were copied to a directory. */
static bool wsl_version_is_mount(const char *path)
{
	struct statx stx;

	return statx(AT_FDCWD, path, AT_NO_AUTOMOUNT, 0, &stx) == 0 &&
	       (stx.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT) && (stx.stx_attributes & STATX_ATTR_MOUNT_ROOT);
}

/* What WSL's own init makes in every distribution, whatever kernel its user built. */
static bool wsl_version_has_interop(void)
{
	struct stat st;

	return stat("/run/WSL", &st) == 0 || stat("/proc/sys/fs/binfmt_misc/WSLInterop", &st) == 0;
}

/* "4.4.0-19041-Microsoft" is WSL1, "5.15.153.1-microsoft-standard-WSL2" WSL2, whose users may run other kernels. */
enum wsl_version wsl_version(void)
{
	struct utsname name;

	if (uname(&name) == 0 && strstr(name.release, "-Microsoft"))
		return WSL_1;
	if (uname(&name) == 0 && (strcasestr(name.release, "microsoft") || strcasestr(name.release, "wsl2")))
		return WSL_2;
	return wsl_version_is_mount(PATH_WSL_DRIVERS) || wsl_version_has_interop() ? WSL_2 : WSL_NONE;
}
