/* SPDX-License-Identifier: Apache-2.0 */

#include "apply/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "root/mount_class.h"

/* ---- what went wrong ---- */

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

/* ---- symlinks ---- */

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

/* ---- loader files ---- */

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
		if (r < 0 || !str_has_prefix(mode->path, "/dev/") || target.mount_map != MOUNT_CLASS_OWN ||
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
