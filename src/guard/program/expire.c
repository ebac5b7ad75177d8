/* SPDX-License-Identifier: Apache-2.0 */

#include "guard/program/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <mntent.h>
#include <stdint.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"

enum { FILEID_KERNFS = 0xfe }; /* include/linux/exportfs.h: a handle that is the inode's number */

/* A mount of each hierarchy, by enum guard_hierarchy; -1: there is none, and its choices stay. */
struct mounts {
	int fds[2];
};

static void expire_close(struct mounts *mounts)
{
	cleanup_closep(&mounts->fds[0]);
	cleanup_closep(&mounts->fds[1]);
}

/*
 * Something else may be mounted over a hierarchy. Asked there for a cgroup, another file system says that it is gone.
 */
static int expire_open_mount(const char *path, enum guard_hierarchy hierarchy)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd >= 0 && choice_hierarchy(fd) == (int)hierarchy ? steal_fd(&fd) : -1;
}

static void expire_open(struct mounts *ret)
{
	_cleanup_(cleanup_fclosep) FILE *file = setmntent("/proc/self/mounts", "re");
	const struct mntent *mount;

	while (file && (mount = getmntent(file))) {
		const bool is_v1 = streq(mount->mnt_type, "cgroup") && hasmntopt(mount, "devices");
		const enum guard_hierarchy hierarchy = is_v1 ? GUARD_DEVICES : GUARD_CGROUP2;

		if ((is_v1 || streq(mount->mnt_type, "cgroup2")) && ret->fds[hierarchy] < 0)
			ret->fds[hierarchy] = expire_open_mount(mount->mnt_dir, hierarchy);
	}
}

static bool expire_is_gone(const struct mounts *mounts, const struct guard_key *key)
{
	union {
		struct file_handle handle;
		char bytes[sizeof(struct file_handle) + sizeof(uint64_t)];
	} place = {.handle = {.handle_bytes = sizeof(uint64_t), .handle_type = FILEID_KERNFS}};
	uint64_t id = key->cgroup;
	int fd;

	if (key->hierarchy > GUARD_DEVICES || mounts->fds[key->hierarchy] < 0)
		return false;
	memcpy(place.handle.f_handle, &id, sizeof(id));
	fd = open_by_handle_at(mounts->fds[key->hierarchy], &place.handle, O_PATH | O_CLOEXEC);
	if (fd < 0)
		return errno == ESTALE || errno == ENOENT;
	(void)close(fd);
	return false;
}

int expire(const struct choices *choices, size_t *ret_removed, size_t *ret_left, struct err *err)
{
	_cleanup_(expire_close) struct mounts mounts = {{-1, -1}};
	struct guard_key key, next;
	size_t removed = 0, left = 0;
	int r;

	expire_open(&mounts);
	r = choice_next(choices, NULL, &next);
	while (r == 0) {
		key = next;
		/* Before it is removed, or the map would begin anew. */
		r = choice_next(choices, &key, &next);
		if (expire_is_gone(&mounts, &key) && choice_remove(choices, &key) == 0)
			removed++;
		else
			left++;
	}
	if (r != -ENOENT)
		return err_set(err, r, "cannot read the guard's choices: %m");
	*ret_removed = removed;
	*ret_left = left;
	return 0;
}
