/* SPDX-License-Identifier: Apache-2.0 */

#include "apply/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/str.h"
#include "ctr-gpu-error.h"
#include "root/mount_class.h"

static const char ours[] = "what ctr-gpu made";

int attach_target_error(const struct attach_context *attach_context, const char *source, const char *target, int r)
{
	errno = -r;
	if (r == -EPERM || r == -EACCES)
		return err_set_advised(
			attach_context->err, CTR_GPU_E_NO_PERMISSION,
			("mounting %s on %s in the container was refused: %m.", source, target),
			("Run this as root with CAP_SYS_ADMIN; a security module (AppArmor, SELinux) may forbid it "
			 "too."));
	if (r == -ENOSYS)
		return err_set_advised(attach_context->err, CTR_GPU_E_KERNEL_TOO_OLD,
				       ("this kernel cannot mount %s: %m", source),
				       ("Update the kernel; on WSL: wsl --update."));
	return err_set(attach_context->err, r, "cannot mount %s on %s in the container: %m", source, target);
}

int attach_target_link(const struct attach_context *attach_context, const char *path, const char *leads_to, char **ret)
{
	int r = own_directory_link(attach_context->rootfs, attach_context->owner, path, leads_to, ret);

	return r < 0 ? err_set(attach_context->err, r, "%m") : 0;
}

int attach_target_make(const struct attach_context *attach_context, const char *path, bool directory,
		       struct rootfs_target *ret)
{
	int r = 0;

	if (str_is_below(path, PLAN_OWN_DIRECTORY))
		r = own_directory_open(attach_context->own, attach_context->rootfs, attach_context->owner);
	if (r < 0)
		return r;
	mapped_root_begin(attach_context->owner);
	r = (directory ? rootfs_make_directory : rootfs_make_file)(attach_context->rootfs, path,
								   directory ? 0755 : 0644, ret);
	mapped_root_end(attach_context->owner);
	return r;
}

int attach_target_find_procfs(const struct attach_context *attach_context, const char *path, struct rootfs_target *ret)
{
	int fd = rootfs_open_path(attach_context->rootfs, path, O_PATH);
	struct statfs fs;

	if (fd >= 0 && (fstatfs(fd, &fs) < 0 || fs.f_type != PROC_SUPER_MAGIC)) {
		(void)close(fd);
		return -ENOENT;
	}
	return rootfs_target_from_fd(attach_context->rootfs, fd, ret);
}

/*
 * Where the image leads another path into a kernel's filesystem, a mount could have the runtime write the container's
 * security label to a file of the image's choice.
 */
bool attach_target_is_forbidden(const struct rootfs_target *target, const char *path)
{
	return target->mount_map == MOUNT_CLASS_SHARED ||
	       (target->mount_map == MOUNT_CLASS_KERNEL && !str_has_prefix(path, "/proc/") &&
		!str_has_prefix(path, "/sys/"));
}

int attach_target_refuse(const struct attach_context *attach_context, const struct rootfs_target *target,
			 const char *path)
{
	if (target->mount_map == MOUNT_CLASS_KERNEL)
		return err_set_advised(
			attach_context->err, CTR_GPU_E_BAD_ROOTFS,
			("the image leads %s into /proc, /sys or a cgroup, where nothing may be mounted.", path),
			("Remove the symlink from the image."));
	return err_set_advised(
		attach_context->err, CTR_GPU_E_VOLUME,
		("%s is in a volume that shares its mounts with the host, where whatever is mounted would stay.", path),
		("Give the container that volume without \"shared\" (rslave will do), or remove the symlink that "
		 "leads there."));
}

bool attach_target_can_do_without(const struct attach_context *attach_context, const char *path, int r,
				  const struct rootfs_target *target)
{
	if (r != -EROFS && r != -EXDEV && !(r == 0 && attach_target_is_forbidden(target, path)))
		return false;
	log_warning(attach_context->log, "%s is left out: its place is %s", path,
		    r == -EROFS ? "read-only" : "in a volume");
	return true;
}

int attach_target_attach(const struct attach_context *attach_context, struct mount_source *source,
			 const struct rootfs_target *target, const char *path)
{
	int r;

	if (attach_target_is_forbidden(target, path))
		return attach_target_refuse(attach_context, target, path);
	r = mount_attach(source, attach_context->stage, target->fd);
	if (S_ISDIR(source->st.st_mode))
		rootfs_drop_parent(attach_context->rootfs);
	return r < 0 ? attach_target_error(attach_context, source->path ? source->path : ours, path, r) : 0;
}

int attach_target_cover(const struct attach_context *attach_context, const struct span *parts, size_t count,
			const struct rootfs_target *target, const char *path)
{
	struct mount_source source = MOUNT_NONE;
	int r;

	if (attach_target_is_forbidden(target, path))
		return attach_target_refuse(attach_context, target, path);
	r = mount_make_data(attach_context->stage, parts, count, &source);
	r = r < 0 ? attach_target_error(attach_context, ours, path, r)
		  : attach_target_attach(attach_context, &source, target, path);
	mount_source_close(&source);
	if (r == 0)
		log_debug(attach_context->log, "mounted over %s", path);
	return r;
}
