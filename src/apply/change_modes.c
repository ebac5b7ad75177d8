/* SPDX-License-Identifier: Apache-2.0 */

/* The modes of directories in the container's /dev. */

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "apply/internal.h"
#include "base/log.h"
#include "root/mount_class.h"

void change_modes_undo(const struct undo_log *undo_log, const struct undo_step *undo_step)
{
	(void)undo_log;
	(void)fchmod(undo_step->fds[0], (mode_t)undo_step->number);
}

static int change_modes_set(const struct attach_context *attach_context, const struct plan_mode *mode, int directory,
			    mode_t before)
{
	struct undo_log *undo_log = attach_context->rootfs->undo_log;
	struct undo_step undo_step = {.undo = change_modes_undo, .fds = {-1, -1, -1}, .number = before & 07777};
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
int change_modes(const struct attach_context *attach_context, const struct plan *plan)
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
		r = change_modes_set(attach_context, mode, target.fd, st.st_mode);
	}
	return r;
}
