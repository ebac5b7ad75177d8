/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The container's user and mount namespace, entered by descriptors of its process. Where the caller may mount nothing
 * in its own user namespace, it may in the container's: then it is entered first.
 */

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include "apply/internal.h"
#include "ctr-gpu-error.h"
#include "lib/container.h"
#include "process/phase.h"

/* @ret_fd: the namespace, for the process that undoes */
static int namespaces_join(const struct ctr_gpu_container *container, const char *name, int type, int *ret_fd,
			   struct err *err)
{
	_cleanup_close_ int fd = -1;
	int r;

	fd = openat(container->process, name, O_RDONLY | O_CLOEXEC);
	if (fd >= 0 && setns(fd, type) == 0) {
		*ret_fd = steal_fd(&fd);
		return 0;
	}
	r = -errno;
	if (r == -ENOENT || r == -ESRCH)
		return container_check_running(container, err);
	if (r == -EPERM || r == -EACCES)
		return err_set_advised(
			err, CTR_GPU_E_NO_PERMISSION,
			("user %d may not enter the namespaces of process %d (%s).", (int)geteuid(),
			 (int)container->pid, name),
			("Run this as root, or in the user namespace that the container was started from."));
	return err_set(err, r, "cannot enter %s of process %d: %m", name, (int)container->pid);
}

/* A process that enters a user namespace gets all capabilities. */
int namespaces_enter_user(const struct ctr_gpu_container *container, int ret_fds[2], struct err *err)
{
	int r = 0;

	if (container->process >= 0 && container->enter_user_namespace)
		r = namespaces_join(container, "ns/user", CLONE_NEWUSER, &ret_fds[0], err);
	return r == 0 && container->process >= 0 && container->enter_user_namespace ? phase_limit(PHASE_GIVE) : r;
}

int namespaces_enter_mounts(const struct ctr_gpu_container *container, int ret_fds[2], struct err *err)
{
	return container->process < 0 ? 0 : namespaces_join(container, "ns/mnt", CLONE_NEWNS, &ret_fds[1], err);
}

int namespaces_enter(const struct ctr_gpu_container *container, int ret_fds[2], struct err *err)
{
	int r = namespaces_enter_user(container, ret_fds, err);

	return r == 0 ? namespaces_enter_mounts(container, ret_fds, err) : r;
}
