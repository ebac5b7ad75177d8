/* SPDX-License-Identifier: Apache-2.0 */

#include "apply/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "root/mount.h"
#include "root/mount_class.h"

/* The directory belongs to the user that makes files in it. */
static int own_directory_mount(struct own_directory *own, struct rootfs *rootfs, int directory,
			       const struct mapped_root *owner)
{
	int fd = mount_own_tmpfs(rootfs->undo_log, directory, owner);

	rootfs_drop_parent(rootfs);
	if (fd < 0)
		return fd;
	own->tmpfs = fd;
	return rootfs->mount_map ? mount_class_find_mount(rootfs, fd, &rootfs->mount_map->own) : 0;
}

void own_directory_undo_writable(const struct undo_log *undo_log, const struct undo_step *undo_step)
{
	(void)mount_set_read_only(undo_log->proc_self_fd, undo_step->fds[0], true);
}

/* A hook before this one, or the runtime, has mounted it. */
static int own_directory_reopen(struct own_directory *own, struct rootfs *rootfs, int *directory)
{
	const struct undo_step keep = {.undo = own_directory_undo_writable, .fds = {*directory, -1, -1}};
	int r = undo_log_add(rootfs->undo_log, &keep, NULL);

	if (r < 0)
		return r;
	own->tmpfs = *directory;
	*directory = -1;
	return mount_set_read_only(rootfs->undo_log->proc_self_fd, own->tmpfs, false);
}

int own_directory_open(struct own_directory *own, struct rootfs *rootfs, const struct mapped_root *owner)
{
	_cleanup_target_ struct rootfs_target target = ROOTFS_TARGET_NONE;
	int r;

	if (own->tried)
		return 0;
	own->tried = true;
	mapped_root_begin(owner);
	r = rootfs_make_directory(rootfs, PLAN_OWN_DIRECTORY, 0755, &target);
	mapped_root_end(owner);
	/* Whatever is made there next says what is wrong. */
	if (r < 0)
		return r == -ENOMEM ? r : 0;
	if (target.mount_map == MOUNT_CLASS_ROOT)
		return own_directory_mount(own, rootfs, target.fd, owner);
	return target.mount_map == MOUNT_CLASS_OWN ? own_directory_reopen(own, rootfs, &target.fd) : 0;
}

int own_directory_close(const struct own_directory *own, const struct rootfs *rootfs)
{
	return own->tmpfs < 0 ? 0 : mount_set_read_only(rootfs->undo_log->proc_self_fd, own->tmpfs, true);
}

bool own_directory_is_reachable(const struct plan *plan, const struct plan_mount *file)
{
	for (size_t i = 0; i < plan->mount_count; i++) {
		const struct plan_mount *mount = &plan->mounts[i];

		if (mount->directory && str_is_below(file->source, mount->source) &&
		    streq(mount->source, mount->target))
			return true;
	}
	return false;
}

bool own_directory_is_linked(const struct rootfs *rootfs, const struct plan *plan, const struct plan_mount *file)
{
	bool there = own_directory_is_reachable(plan, file);
	_cleanup_close_ int fd = rootfs_open_path(rootfs, file->target, O_PATH | O_NOFOLLOW);
	_cleanup_free_ char *text = NULL, *own = NULL;

	if (fd < 0 || fd_read_link_at(fd, "", &text) < 0 || str_format(&own, PLAN_OWN_DIRECTORY "%s", file->target) < 0)
		return false;
	return streq(text, there ? file->source : own);
}

int own_directory_link(struct rootfs *rootfs, const struct mapped_root *owner, const char *path, const char *leads_to,
		       char **ret)
{
	_cleanup_free_ char *target = NULL;
	int r;

	*ret = NULL;
	if (str_is_below(path, PLAN_OWN_DIRECTORY))
		return 0;
	r = leads_to ? str_format(&target, "%s", leads_to) : str_format(&target, PLAN_OWN_DIRECTORY "%s", path);
	if (r < 0)
		return r;
	mapped_root_begin(owner);
	r = rootfs_try_symlink(rootfs, path, target);
	mapped_root_end(owner);
	if (r > 0)
		*ret = steal_ptr(target);
	return r == -ENOMEM ? r : 0;
}
