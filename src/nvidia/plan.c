/* SPDX-License-Identifier: Apache-2.0 */

#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "base/paths.h"
#include "nvidia/internal.h"
#include "system/noexec.h"

int nvidia_plan_add_mount(const struct nvidia_plan *nvidia_plan, struct driver_files_file *file, const char *target,
			  enum plan_mount_kind kind, const char *reason)
{
	struct plan_mount mount = {
		.source = steal_ptr(file->path),
		.target = strdup(target),
		.directory = S_ISDIR(file->st.st_mode),
		.device = file->st.st_dev,
		.inode = file->st.st_ino,
		.kind = kind,
		.flags = kind == PLAN_LIBRARY || kind == PLAN_PROGRAM ? 0 : PLAN_MOUNT_NOEXEC,
		.reason = strdup(reason),
	};

	return plan_add_mount(nvidia_plan->plan, &mount);
}

/* Where GBM looks for a driver is compiled into it, and differs from distribution to distribution. */
static const char *const gbm_links[] = {
	"/usr/lib64/gbm/nvidia-drm_gbm.so",
#if defined(__aarch64__)
	"/usr/lib/aarch64-linux-gnu/gbm/nvidia-drm_gbm.so",
#else
	"/usr/lib/x86_64-linux-gnu/gbm/nvidia-drm_gbm.so",
#endif
};

enum { SCREEN = CAPABILITY_GRAPHICS | CAPABILITY_DISPLAY };

static int plan_libraries_add_symlink(const struct nvidia_plan *nvidia_plan, const char *path, const char *points_to,
				      const char *reason)
{
	struct plan_symlink link = {.path = strdup(path), .points_to = strdup(points_to), .reason = strdup(reason)};

	return plan_add_symlink(nvidia_plan->plan, &link);
}

static int plan_libraries_add_library(const struct nvidia_plan *nvidia_plan, struct driver_files_library *library,
				      struct strv *names)
{
	const char *directory = library->is_32 ? LIBRARY_DIR_32 : PATH_CONTAINER;
	struct driver_files_file file = {.path = steal_ptr(library->path), .st = library->st};
	_cleanup_free_ char *target = NULL, *link = NULL;
	int r;

	/* Two directories may have the same library; the first counts, as it does for the loader. */
	if (strv_contains(names, library->soname)) {
		free(file.path);
		return 0;
	}
	if (str_format(&target, "%s/%s", directory, library->soname) < 0) {
		free(file.path);
		return -ENOMEM;
	}
	r = nvidia_plan_add_mount(nvidia_plan, &file, target, PLAN_LIBRARY,
				  library->known ? library->known->meaning
						 : "a library of this driver that ctr-gpu does not know");
	if (r == 0)
		r = strv_add(names, library->soname);
	if (r < 0 || !library->known || !library->known->development)
		return r;
	/* "libcuda.so" beside "libcuda.so.1", for programs that look for it without a version. */
	if (str_format(&link, "%s/%s.so", directory, library->known->stem) < 0)
		return -ENOMEM;
	r = plan_libraries_add_symlink(nvidia_plan, link, library->soname, "the name that programs are linked with");
	return r < 0 ? r : strv_add(names, strrchr(link, '/') + 1);
}

/* The libraries of a driver that is not the machine's own (a driver container's) may be on any mount. */
static int plan_libraries_check_mounts(const struct nvidia_plan *nvidia_plan)
{
	_cleanup_free_ char *seen = NULL;
	struct plan *plan = nvidia_plan->plan;
	int r = 0;

	for (size_t i = 0; i < plan->mount_count && r == 0 && (nvidia_plan->capabilities & CAPABILITY_COMPUTE); i++)
		if (plan->mounts[i].kind == PLAN_LIBRARY)
			r = noexec_check_around(plan, plan->mounts[i].source, &seen);
	return r;
}

int plan_libraries(const struct nvidia_plan *nvidia_plan)
{
	_cleanup_libraries_ struct driver_files_libraries libraries = {0};
	_cleanup_strv_ struct strv names = {0}, names_32 = {0};
	const struct {
		const char *path, *reason;
		struct strv *names;
	} dirs[] = {{PATH_CONTAINER, "the driver's libraries", &names},
		    {LIBRARY_DIR_32, "the driver's 32-bit libraries", &names_32}};
	int r;

	r = driver_files_libraries(nvidia_plan->install, nvidia_plan->capabilities, &libraries);
	if (r < 0)
		return err_set(nvidia_plan->err, r, "cannot read the driver's libraries: %m");
	for (size_t i = 0; i < libraries.count && r == 0; i++)
		r = plan_libraries_add_library(nvidia_plan, &libraries.items[i],
					       libraries.items[i].is_32 ? &names_32 : &names);
	if ((nvidia_plan->capabilities & SCREEN) && strv_contains(&names, "libnvidia-allocator.so.1"))
		for (size_t i = 0; i < ARRAY_SIZE(gbm_links) && r == 0; i++)
			r = plan_libraries_add_symlink(nvidia_plan, gbm_links[i],
						       PATH_CONTAINER "/libnvidia-allocator.so.1",
						       "where GBM looks for the driver");
	if (r == 0 && (nvidia_plan->capabilities & CAPABILITY_COMPAT32) && names_32.count == 0)
		r = strv_format(&nvidia_plan->plan->warnings,
				"32-bit libraries are asked for, and the host has none of driver %s",
				nvidia_plan->module->version);
	for (size_t i = 0; i < ARRAY_SIZE(dirs) && r == 0; i++)
		if (dirs[i].names->count > 0)
			r = plan_add_library_dir(nvidia_plan->plan, &(struct plan_library_dir){
									    .path = strdup(dirs[i].path),
									    .overrides_image = true,
									    .libraries = steal_struct(dirs[i].names),
									    .reason = strdup(dirs[i].reason),
								    });
	return r == 0 ? plan_libraries_check_mounts(nvidia_plan) : r;
}
