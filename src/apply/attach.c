/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a plan does in a root filesystem, piece by piece: the directory of ours, mounts, covers, symlinks, loader files
 * and modes. apply.c has the order.
 */

#include "apply/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/str.h"
#include "ctr-gpu-error.h"
#include "root/mount.h"
#include "root/mount_class.h"

/* ---- the directory of ours ---- */

/* The directory belongs to the user that makes files in it. */
static int own_directory_mount(struct own_directory *own, struct rootfs *rootfs, int directory,
			       const struct mapped_root *owner)
{
	int fd = mount_own_tmpfs(rootfs->undo_log, directory, owner), r;

	rootfs_forget(rootfs);
	if (fd < 0)
		return fd;
	own->tmpfs = fd;
	r = mount_class_find_mount(rootfs, fd, &rootfs->mount_map->own);
	return r == 0 ? rootfs_know_own(rootfs, PLAN_OWN_DIRECTORY "/", fd) : r;
}

void own_directory_undo_writable(const struct undo_log *undo_log, const struct undo_step *undo_step)
{
	(void)mount_set_read_only(undo_log->proc_self_fd, undo_step->fds[0], true);
}

/* A hook before this one, or the runtime, has mounted it. */
static int own_directory_reopen(struct own_directory *own, struct rootfs *rootfs, struct rootfs_target *directory)
{
	const struct undo_step keep = {
		.undo = own_directory_undo_writable,
		.fds = {directory->fd, -1, -1},
		.borrows = directory->borrowed,
	};
	int r = undo_log_add(rootfs->undo_log, &keep, NULL);

	if (r < 0)
		return r;
	own->tmpfs = directory->fd;
	*directory = ROOTFS_TARGET_NONE;
	return mount_set_read_only(rootfs->undo_log->proc_self_fd, own->tmpfs, false);
}

/*
 * Has PLAN_OWN_DIRECTORY lie in memory, if that is possible. Where a volume is there, things are made, or missed, as
 * everywhere. Return: 0; negative errno.
 */
static int own_directory_open(struct own_directory *own, struct rootfs *rootfs, const struct mapped_root *owner)
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
	if (target.mount_class == MOUNT_CLASS_ROOT)
		return own_directory_mount(own, rootfs, target.fd, owner);
	return target.mount_class == MOUNT_CLASS_OWN ? own_directory_reopen(own, rootfs, &target) : 0;
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

/* ---- places ---- */

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

/* What is mounted there covers the container's root, and cannot be taken back through it. */
static bool attach_target_is_root(const struct attach_context *attach_context, const struct rootfs_target *target)
{
	struct stat root, st;

	return fstat(attach_context->rootfs->fd, &root) == 0 && fstat(target->fd, &st) == 0 &&
	       st.st_dev == root.st_dev && st.st_ino == root.st_ino;
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
	if (r < 0 || !directory || ret->made || !attach_target_is_root(attach_context, ret))
		return r;
	rootfs_target_close(ret);
	return -ELOOP;
}

/*
 * A file or directory of procfs in the container. A volume over /proc may contain anything: what is not procfs, or is
 * missing, is left alone. Return: 0; -ENOENT; negative errno.
 */
static int attach_target_find_procfs(const struct attach_context *attach_context, const char *path,
				     struct rootfs_target *ret)
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
	return target->mount_class == MOUNT_CLASS_SHARED ||
	       (target->mount_class == MOUNT_CLASS_KERNEL && !str_has_prefix(path, "/proc/") &&
		!str_has_prefix(path, "/sys/"));
}

/* Return: CTR_GPU_E_BAD_ROOTFS or CTR_GPU_E_VOLUME, with the error set to what is to be done about it. */
static int attach_target_refuse(const struct attach_context *attach_context, const struct rootfs_target *target,
				const char *path)
{
	if (target->mount_class == MOUNT_CLASS_KERNEL)
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
	/* No path has been looked up through a directory that was just made. */
	if (S_ISDIR(source->st.st_mode) && !target->made)
		rootfs_forget(attach_context->rootfs);
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

/* ---- all that is covered ---- */

/*
 * Paths are looked up first, since the stage covers the root and an image's ".." would lead into it; then all is made
 * in one stage; then, without the stage, it is attached.
 */

struct cover {
	char *path;
	const struct plan_file *file; /* NULL: the path is a directory, which is to be empty */
	struct rootfs_target target;  /* nowhere: nothing is to be done */
	struct mount_source source;
};

/* The file says so already when a plan is applied twice; then procfs is not found, as it is covered. */
static bool cover_is_logged(const struct attach_context *attach_context, const struct rootfs_target *target,
			    const struct plan_file *file)
{
	_cleanup_free_ char *old = NULL;

	return !file->on_procfs && !target->made &&
	       rootfs_read_handle(attach_context->rootfs, target->fd, strlen(file->content), &old, NULL) == 0 &&
	       streq(old, file->content);
}

static int cover_find_file(const struct attach_context *attach_context, const struct plan_file *file, struct cover *ret)
{
	_cleanup_target_ struct rootfs_target target = ROOTFS_TARGET_NONE;
	_cleanup_free_ char *path = NULL;
	int r = file->on_procfs ? 0 : attach_target_link(attach_context, file->target, NULL, &path);

	if (r == 0 && !path)
		path = strdup(file->target);
	if (!path)
		return err_set(attach_context->err, -ENOMEM, "%m");
	r = file->on_procfs ? attach_target_find_procfs(attach_context, path, &target)
			    : attach_target_make(attach_context, path, false, &target);
	if (!file->on_procfs && attach_target_can_do_without(attach_context, path, r, &target))
		return 0;
	if (r < 0)
		return r == -ENOENT && file->on_procfs
			       ? 0
			       : write_files_error(attach_context->err, attach_context->rootfs, path, r);
	if (cover_is_logged(attach_context, &target, file))
		return 0;
	if (attach_target_is_forbidden(&target, path))
		return attach_target_refuse(attach_context, &target, path);
	*ret = (struct cover){steal_ptr(path), file, target, MOUNT_NONE};
	target = ROOTFS_TARGET_NONE;
	return 0;
}

static int cover_find_hidden(const struct attach_context *attach_context, const struct plan_hidden *hidden,
			     struct cover *ret)
{
	_cleanup_target_ struct rootfs_target target = ROOTFS_TARGET_NONE;
	int r;

	r = attach_target_find_procfs(attach_context, hidden->path, &target);
	if (r < 0)
		return r == -ENOENT ? 0
				    : write_files_error(attach_context->err, attach_context->rootfs, hidden->path, r);
	*ret = (struct cover){strdup(hidden->path), NULL, target, MOUNT_NONE};
	target = ROOTFS_TARGET_NONE;
	return ret->path ? 0 : err_set(attach_context->err, -ENOMEM, "%m");
}

static int cover_find_all(const struct attach_context *attach_context, const struct plan *plan, struct cover *lays)
{
	int r = 0;

	for (size_t i = 0; i < plan->file_count && r == 0; i++)
		r = cover_find_file(attach_context, &plan->files[i], lays++);
	for (size_t i = 0; i < plan->hidden_count && r == 0; i++)
		r = cover_find_hidden(attach_context, &plan->hidden[i], lays++);
	return r;
}

static int cover_attach(const struct attach_context *attach_context, struct cover *cover)
{
	int r = attach_target_attach(attach_context, &cover->source, &cover->target, cover->path);

	mount_source_close(&cover->source);
	if (r == 0)
		log_debug(attach_context->log, "mounted over %s", cover->path);
	return r;
}

/* Without open_tree(2) the source is a mount in the stage, and leaves it at once. */
static int cover_make(const struct attach_context *attach_context, struct cover *cover)
{
	struct span content = span_text(cover->file ? cover->file->content : "");
	int r = cover->file ? mount_make_data(attach_context->stage, &content, 1, &cover->source)
			    : mount_make_empty(attach_context->stage, &cover->source);

	if (r < 0)
		return attach_target_error(attach_context, "what ctr-gpu made", cover->path, r);
	return cover->source.staged ? cover_attach(attach_context, cover) : 0;
}

static int cover_make_all(const struct attach_context *attach_context, struct cover *lays, size_t count)
{
	int r = 0;

	for (size_t i = 0; i < count && r == 0; i++)
		if (lays[i].target.fd >= 0)
			r = cover_make(attach_context, &lays[i]);
	mount_stage_close(attach_context->stage);
	for (size_t i = 0; i < count && r == 0; i++)
		if (lays[i].source.tree >= 0)
			r = cover_attach(attach_context, &lays[i]);
	return r;
}

int cover_all(const struct attach_context *attach_context, const struct plan *plan)
{
	const size_t count = plan->file_count + plan->hidden_count;
	_cleanup_free_ struct cover *lays = calloc(count + 1, sizeof(*lays));
	int r;

	if (!lays)
		return err_set(attach_context->err, -ENOMEM, "%m");
	for (size_t i = 0; i < count; i++)
		lays[i] = (struct cover){NULL, NULL, ROOTFS_TARGET_NONE, MOUNT_NONE};
	r = cover_find_all(attach_context, plan, lays);
	if (r == 0)
		r = cover_make_all(attach_context, lays, count);
	for (size_t i = 0; i < count; i++) {
		free(lays[i].path);
		rootfs_target_close(&lays[i].target);
		mount_source_close(&lays[i].source);
	}
	return r;
}

/* ---- written files: what went wrong ---- */

static const struct {
	int error;
	const char *advice;
} advice[] = {
	{EISDIR, "The image has a directory there, where a file must be; remove it from the image."},
	{ENOTDIR, "The image has a file there, where a directory must be; remove it from the image."},
	{ELOOP, "The image has symlinks there that lead in a circle, or to its root; remove them from the image."},
	{EAGAIN, "Something renames directories there all the time; start the container without it."},
	{ENOSPC, "Make room in the container's storage."},
	{EFBIG, "The size of files is limited: raise \"ulimit -f\", or LimitFSIZE= of the engine's service."},
	{EOVERFLOW, "What is there has more than 16 MiB, which no real one has; remove it from the image."},
	{EDQUOT, "The quota of the container's storage is used up: make room there."},
};

/* What lies on a volume is nothing of the image: Docker makes a directory where a bind mount's source is missing. */
static bool write_files_is_volume(const struct rootfs *rootfs, const char *path, int r)
{
	_cleanup_close_ int fd = r == -EISDIR || r == -ENOTDIR ? rootfs_open_path(rootfs, path, O_PATH) : -1;
	enum mount_class kind;

	return fd >= 0 && mount_class_of(rootfs, fd, &kind) == 0 && kind != MOUNT_CLASS_ROOT;
}

int write_files_error(struct err *err, const struct rootfs *rootfs, const char *path, int r)
{
	const char *next = "Look at this path in the image.";

	if (write_files_is_volume(rootfs, path, r))
		return err_set_advised(
			err, CTR_GPU_E_VOLUME,
			("a volume puts a %s at %s, where the driver's %s must be.",
			 r == -EISDIR ? "directory" : "file", path, r == -EISDIR ? "file" : "directory"),
			("Start the container without that volume (-v …:%s); a missing source is made a directory.",
			 path));
	if (r == -ENOMEM)
		return err_set(err, r, "%m");
	if (r == -EROFS)
		return err_set_advised(
			err, CTR_GPU_E_ROOTFS_READ_ONLY,
			("%s is missing in the container, and its root filesystem is read-only.", path),
			("Create it in the image, as an empty %s, or give the container a root filesystem that can be "
			 "written.",
			 "file or directory"));
	if (r == -EXDEV)
		return err_set_advised(
			err, CTR_GPU_E_VOLUME,
			("%s is missing in a volume of the container, and nothing is made in volumes.", path),
			("Create it there, as an empty %s, or mount the volume elsewhere.", "file or directory"));
	for (size_t i = 0; i < ARRAY_SIZE(advice); i++)
		if (advice[i].error == -r)
			next = advice[i].advice;
	return err_set_advised(err, r, ("cannot make %s in the container: %m.", path), ("%s", next));
}

/* ---- written files: symlinks ---- */

/* Links are conveniences (nvidia-smi in PATH): where they cannot be written, the container works without. */
int write_files_make_symlinks(const struct file_writer *writer)
{
	static const struct {
		int error;
		const char *what;
	} obstacles[] = {
		{EROFS, "its directory is read-only"},
		{EXDEV, "its directory is a volume"},
		{EISDIR, "a directory is there"},
		{EBUSY, "something is mounted there"},
	};
	const struct plan *plan = writer->plan;

	for (size_t i = 0; i < plan->symlink_count; i++) {
		const struct plan_symlink *entry = &plan->symlinks[i];
		const char *obstacle = NULL;
		int r;

		if (writer->leave_own && str_is_below(entry->path, PLAN_OWN_DIRECTORY))
			continue;
		mapped_root_begin(writer->owner);
		r = (entry->replaces ? rootfs_replace_symlink : rootfs_make_symlink)(writer->rootfs, entry->path,
										     entry->points_to);
		mapped_root_end(writer->owner);
		for (size_t j = 0; j < ARRAY_SIZE(obstacles); j++)
			if (obstacles[j].error == -r)
				obstacle = obstacles[j].what;
		if (obstacle)
			log_warning(writer->log, "no symlink %s: %s", entry->path, obstacle);
		else if (r < 0)
			return write_files_error(writer->err, writer->rootfs, entry->path, r);
	}
	return 0;
}

/* ---- written files: loader files ---- */

static int write_files_replace(const struct file_writer *writer, const struct loader_file *file)
{
	int r;

	if (file->covered && file->handle >= 0)
		return -EBUSY;
	mapped_root_begin(writer->owner);
	r = rootfs_replace_file(writer->rootfs, file->path, file->parts, ARRAY_SIZE(file->parts), 0644);
	mapped_root_end(writer->owner);
	return r;
}

int write_files_make_loader_files(const struct file_writer *writer)
{
	struct loader_file *files = NULL;
	size_t count = 0;
	int r;

	if (!writer->plan->library_dir_count)
		return 0;
	mapped_root_begin(writer->owner);
	r = loader_files(writer->rootfs, writer->plan, &files, &count, writer->err);
	mapped_root_end(writer->owner);
	for (size_t i = 0; i < count && r == 0; i++) {
		const struct loader_file *file = &files[i];

		r = write_files_replace(writer, file);
		/*
		 * A file that cannot be written, or that a volume holds, is covered by one that says what it should
		 * say.
		 */
		if (r == -EROFS || r == -EXDEV || r == -EBUSY || r == -EACCES || r == -EPERM)
			r = writer->cover(writer->user, file, r);
		else if (r < 0)
			r = write_files_error(writer->err, writer->rootfs, file->path, r);
		else
			log_debug(writer->log, "wrote %s", file->path);
	}
	if (!writer->rootfs->undo_log || !writer->rootfs->undo_log->ends)
		loader_files_free(files, count);
	return r;
}

/* ---- modes of directories ---- */

void write_files_undo_mode(const struct undo_log *undo_log, const struct undo_step *undo_step)
{
	(void)undo_log;
	(void)fchmod(undo_step->fds[0], (mode_t)undo_step->number);
}

static int write_files_set_mode(const struct attach_context *attach_context, const struct plan_mode *mode,
				int directory, mode_t before)
{
	struct undo_log *undo_log = attach_context->rootfs->undo_log;
	struct undo_step undo_step = {.undo = write_files_undo_mode, .fds = {-1, -1, -1}, .number = before & 07777};
	int r;

	undo_step.fds[0] = fcntl(directory, F_DUPFD_CLOEXEC, 0);
	r = undo_step.fds[0] < 0 ? -errno : undo_log_add(undo_log, &undo_step, NULL);
	if (r == 0 && fchmod(directory, mode->mode) < 0)
		r = -errno;
	return r < 0 ? err_set(attach_context->err, r, "cannot change the mode of %s in the container: %m", mode->path)
		     : 0;
}

/*
 * Only of what runtimes make: a directory in a tmpfs of this container. A volume, or what an image leads to, may be the
 * host's.
 */
int write_files_change_modes(const struct attach_context *attach_context, const struct plan *plan)
{
	int r = 0;

	for (size_t i = 0; i < plan->mode_count && r == 0; i++) {
		const struct plan_mode *mode = &plan->modes[i];
		_cleanup_target_ struct rootfs_target target = ROOTFS_TARGET_NONE;
		struct stat st;

		r = rootfs_target_from_fd(attach_context->rootfs,
					  rootfs_open_path(attach_context->rootfs, mode->path, O_RDONLY | O_DIRECTORY),
					  &target);
		if (r < 0 || !str_has_prefix(mode->path, "/dev/") || target.mount_class != MOUNT_CLASS_OWN ||
		    fstat(target.fd, &st) < 0) {
			log_warning(attach_context->log,
				    "chmod: %s is not a directory of the container's /dev; it stays as it is",
				    mode->path);
			r = 0;
			continue;
		}
		r = write_files_set_mode(attach_context, mode, target.fd, st.st_mode);
	}
	return r;
}
