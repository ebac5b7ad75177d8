/* SPDX-License-Identifier: Apache-2.0 */

#include "apply/placing.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/str.h"
#include "ctr-gpu-error.h"
#include "root/ground.h"

static const char ours[] = "what ctr-gpu made";

int placing_error(const struct placing *placing, const char *source, const char *target, int r)
{
	errno = -r;
	if (r == -EPERM || r == -EACCES)
		return err_set(
			placing->err, CTR_GPU_E_NO_PERMISSION,
			"mounting %s on %s in the container was refused: %m.\n"
			"Run this as root with CAP_SYS_ADMIN; a security module (AppArmor, SELinux) may forbid it too.",
			source, target);
	if (r == -ENOSYS)
		return err_set(placing->err, CTR_GPU_E_KERNEL_TOO_OLD,
			       "this kernel cannot mount %s: %m\nUpdate the kernel; on WSL: wsl --update.", source);
	return err_set(placing->err, r, "cannot mount %s on %s in the container: %m", source, target);
}

int placing_make(const struct placing *placing, const char *path, bool directory, struct rootfs_place *ret)
{
	int r;

	owner_begin(placing->owner);
	r = (directory ? rootfs_make_directory : rootfs_make_file)(placing->rootfs, path, directory ? 0755 : 0644, ret);
	owner_end(placing->owner);
	return r;
}

int placing_find_procfs(const struct placing *placing, const char *path, struct rootfs_place *ret)
{
	int fd = rootfs_open_path(placing->rootfs, path, O_PATH);
	struct statfs fs;

	if (fd >= 0 && (fstatfs(fd, &fs) < 0 || fs.f_type != PROC_SUPER_MAGIC)) {
		(void)close(fd);
		return -ENOENT;
	}
	return rootfs_take_place(placing->rootfs, fd, ret);
}

/*
 * Where the image leads another path into a kernel's filesystem, a mount could have the runtime write the container's
 * security label to a file of the image's choice.
 */
bool placing_is_forbidden(const struct rootfs_place *target, const char *path)
{
	return target->ground == GROUND_SHARED ||
	       (target->ground == GROUND_KERNEL && !str_has_prefix(path, "/proc/") && !str_has_prefix(path, "/sys/"));
}

int placing_refuse(const struct placing *placing, const struct rootfs_place *target, const char *path)
{
	if (target->ground == GROUND_KERNEL)
		return err_set(placing->err, CTR_GPU_E_BAD_ROOTFS,
			       "the image leads %s into /proc, /sys or a cgroup, where nothing may be mounted.\n"
			       "Remove the symlink from the image.",
			       path);
	return err_set(placing->err, CTR_GPU_E_VOLUME,
		       "%s is in a volume that shares its mounts with the host, where whatever is mounted would stay.\n"
		       "Give the container that volume without \"shared\" (rslave will do), or remove the symlink that "
		       "leads there.",
		       path);
}

bool placing_can_do_without(const struct placing *placing, const char *path, int r, const struct rootfs_place *target)
{
	if (r != -EROFS && r != -EXDEV && !(r == 0 && placing_is_forbidden(target, path)))
		return false;
	log_warning(placing->log, "%s is left out: its place is %s", path, r == -EROFS ? "read-only" : "in a volume");
	return true;
}

int placing_attach(const struct placing *placing, struct mount_source *source, const struct rootfs_place *target,
		   const char *path)
{
	int r;

	if (placing_is_forbidden(target, path))
		return placing_refuse(placing, target, path);
	r = mount_attach(source, placing->stage, target->fd);
	if (S_ISDIR(source->st.st_mode))
		rootfs_forget_parent(placing->rootfs);
	return r < 0 ? placing_error(placing, source->path ? source->path : ours, path, r) : 0;
}

int placing_cover(const struct placing *placing, const struct span *parts, size_t count,
		  const struct rootfs_place *target, const char *path)
{
	struct mount_source source = MOUNT_NONE;
	int r;

	if (placing_is_forbidden(target, path))
		return placing_refuse(placing, target, path);
	r = mount_make_data(placing->stage, parts, count, &source);
	r = r < 0 ? placing_error(placing, ours, path, r) : placing_attach(placing, &source, target, path);
	mount_source_close(&source);
	if (r == 0)
		log_debug(placing->log, "mounted over %s", path);
	return r;
}
