/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The container's user and mount namespace, entered by descriptors of its process. Where the caller may mount nothing
 * in its own user namespace, it may in the container's: then it is entered first.
 */

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "apply/internal.h"
#include "base/fd.h"
#include "ctr-gpu-error.h"
#include "lib/container.h"
#include "process/phase.h"

enum { ID_MAP_MAX = 1 << 16 };

static const unsigned NO_ID = (unsigned)-1; /* what an id is that this user namespace has not */

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

int namespaces_open_root(const struct ctr_gpu_container *container, struct rootfs *ret, struct err *err)
{
	_cleanup_rootfs_ struct rootfs root = ROOTFS_CLOSED;
	int r = rootfs_open(AT_FDCWD, "/", &root);

	if (r < 0)
		return err_set(err, r, "cannot open the root directory of process %d: %m", (int)container->pid);
	r = container_check_root(&root, "/", &container->own_root, err);
	if (r != 0)
		return r;
	*ret = root;
	root = ROOTFS_CLOSED;
	return 0;
}

/*
 * The identity that 0 inside has outside, by a line of uid_map(5): "inside outside count". Without a 0 inside, the
 * first line counts: the user who made the namespace may be that, too. Return: 0; -EPERM if there is none; negative
 * errno.
 */
static int namespaces_read_root_id(const struct ctr_gpu_container *container, const char *map, unsigned *ret)
{
	_cleanup_free_ char *text = NULL;
	unsigned inside, outside, count;
	bool any = false;
	int r;

	r = fd_read_file_at(container->process, map, ID_MAP_MAX, &text, NULL);
	if (r < 0)
		return r;
	for (const char *line = text; line && *line; line = strchr(line, '\n'), line += line != NULL)
		if (sscanf(line, "%u %u %u", &inside, &outside, &count) == 3 && outside != NO_ID &&
		    (!any || inside == 0)) {
			*ret = outside;
			any = true;
		}
	return any ? 0 : -EPERM;
}

int namespaces_find_owner(const struct ctr_gpu_container *container, struct mapped_root *ret, struct err *err)
{
	struct mapped_root owner = {0};
	int r;

	if (container->enter_user_namespace || !container_has_own_user_namespace(container))
		return 0;
	r = namespaces_read_root_id(container, "uid_map", &owner.uid);
	if (r == 0)
		r = namespaces_read_root_id(container, "gid_map", &owner.gid);
	if (r == -EPERM)
		return err_set_advised(
			err, CTR_GPU_E_NO_PERMISSION,
			("process %d is in a user namespace that has no user of this one, so nothing is made for it.",
			 (int)container->pid),
			("Name another process of the container."));
	if (r < 0)
		return err_set(err, r, "cannot read the user namespace of process %d: %m", (int)container->pid);
	owner.other = owner.uid != geteuid() || owner.gid != getegid();
	*ret = owner;
	return 0;
}
