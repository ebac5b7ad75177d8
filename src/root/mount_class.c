/* SPDX-License-Identifier: Apache-2.0 */

#include "root/mount_class.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

#include "base/fd.h"
#include "base/str.h"
#include "root/mount.h"
#include "root/mountinfo.h"
#include "root/rootfs.h"
#include "root/statmount.h"

enum { FDINFO_MAX = 4096 };

void mount_map_clear(struct mount_map *mount_map)
{
	free(mount_map->outside);
	free(mount_map->inside);
	free(mount_map->root_path);
	cleanup_closep(&mount_map->outside_fd);
	*mount_map = MOUNT_MAP_NONE;
}

/* ---- which mount ---- */

/* A path below /proc/self, by a descriptor of a directory in it once another mount namespace is entered. */
static int mount_class_read_proc_self(const struct rootfs *rootfs, const char *path, size_t max, char **ret)
{
	_cleanup_free_ char *from = NULL;

	if (str_format(&from, "%s/%s", rootfs->proc_self_fd < 0 ? "/proc/self" : "..", path) < 0)
		return -ENOMEM;
	return fd_read_file_at(rootfs->proc_self_fd < 0 ? AT_FDCWD : rootfs->proc_self_fd, from, max, ret, NULL);
}

/* Before Linux 5.8 the number of a mount is only here. */
static int mount_class_read_fdinfo(const struct rootfs *rootfs, int fd, uint64_t *ret)
{
	_cleanup_free_ char *path = NULL, *text = NULL;
	const char *line;
	int r;

	if (str_format(&path, "fdinfo/%d", fd) < 0)
		return -ENOMEM;
	r = mount_class_read_proc_self(rootfs, path, FDINFO_MAX, &text);
	if (r < 0)
		return r;
	line = strstr(text, "mnt_id:");
	if (!line)
		return -EOPNOTSUPP;
	*ret = strtoull(line + strlen("mnt_id:"), NULL, 10);
	return 0;
}

/* @name: "" or a name in directory @fd. Return: whether the kernel gives the mount's number (Linux 5.8). */
static bool mount_class_query(int fd, const char *name, uint64_t *ret)
{
	const int flags = AT_EMPTY_PATH | AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT | AT_SYMLINK_NOFOLLOW;
	struct statx stx;

	if (statx(fd, name, flags, STATX_MNT_ID, &stx) < 0 || !(stx.stx_mask & STATX_MNT_ID))
		return false;
	*ret = stx.stx_mnt_id;
	return true;
}

int mount_class_find_mount(const struct rootfs *rootfs, int fd, uint64_t *ret)
{
	return mount_class_query(fd, "", ret) ? 0 : mount_class_read_fdinfo(rootfs, fd, ret);
}

static int mount_class_find_root(const struct rootfs *rootfs, uint64_t *ret)
{
	const uint64_t known = rootfs->mount_map && rootfs->mount_map->root ? rootfs->mount_map->root : rootfs->mount;
	int r = 0;

	if (known) {
		*ret = known;
		return 0;
	}
	r = mount_class_find_mount(rootfs, rootfs->fd, ret);
	if (r == 0 && rootfs->mount_map)
		rootfs->mount_map->root = *ret;
	return r;
}

static int mount_class_compare_to_root(const struct rootfs *rootfs, int fd, uint64_t *ret_mount, bool *ret_same)
{
	uint64_t root;
	int r;

	r = mount_class_find_root(rootfs, &root);
	if (r == 0)
		r = mount_class_find_mount(rootfs, fd, ret_mount);
	if (r == 0)
		*ret_same = *ret_mount == root;
	return r;
}

bool mount_class_is_root(const struct rootfs *rootfs, int fd)
{
	uint64_t mount;
	bool same = false;

	return mount_class_compare_to_root(rootfs, fd, &mount, &same) == 0 && same;
}

/* ---- what else is mounted ---- */

/* Mounts on top of a mount are looked for in the current namespace. */
static int mount_class_read_inside(const struct rootfs *rootfs)
{
	struct mount_map *mount_map = rootfs->mount_map;

	return mount_map->inside ? 0
				 : mount_class_read_proc_self(rootfs, "mountinfo", MOUNTINFO_MAX, &mount_map->inside);
}

/* A file opened before another namespace was entered shows the old one. */
static int mount_class_read_outside(struct mount_map *mount_map)
{
	return mount_map->outside || mount_map->outside_fd < 0
		       ? 0
		       : fd_read_all(mount_map->outside_fd, MOUNTINFO_MAX, &mount_map->outside, NULL);
}

/* @mount: what @fd is on */
static int mount_class_is_shared(const struct rootfs *rootfs, int fd, uint64_t mount, bool *ret)
{
	struct mountinfo_line line;
	struct mountinfo_field text;
	uint64_t id;
	int r;

	if (statmount_is_shared(fd, ret))
		return 0;
	r = mount_class_read_inside(rootfs);
	if (r < 0)
		return r;
	text = mountinfo_field_of(rootfs->mount_map->inside);
	while (mountinfo_next(&text, &line)) {
		if (!mountinfo_id(&line, &id) || id != mount)
			continue;
		*ret = line.shared;
		return 0;
	}
	return -ESTALE;
}

static int mount_class_read_root_path(const struct rootfs *rootfs)
{
	_cleanup_free_ char *number = NULL;

	if (rootfs->mount_map->root_path)
		return 0;
	if (str_format(&number, "%d", rootfs->fd) < 0)
		return -ENOMEM;
	return fd_read_link_at(rootfs->proc_self_fd, number, &rootfs->mount_map->root_path);
}

/* Whether the first process has a filesystem mounted nowhere. Without the right to look, we have a user's rights. */
static bool mount_class_is_hidden(const struct rootfs *rootfs, dev_t dev)
{
	_cleanup_free_ char *text = NULL;
	struct mountinfo_line line;
	struct mountinfo_field rest;
	dev_t other;
	int r;

	r = mount_class_read_proc_self(rootfs, "../1/mountinfo", MOUNTINFO_MAX, &text);
	if (r < 0)
		return r == -EACCES || r == -EPERM || r == -ENOENT;
	rest = mountinfo_field_of(text);
	while (mountinfo_next(&rest, &line))
		if (!mountinfo_dev(&line, &other) || other == dev)
			return false;
	return true;
}

/* Adds to both: whether lines of a filesystem are beside @root, NULL where none can be below it, and above it. */
static int mount_map_place_mounts(struct mountinfo_field text, dev_t dev, const char *root, bool *beside, bool *above)
{
	struct mountinfo_line line;
	dev_t other;

	while (mountinfo_next(&text, &line)) {
		_cleanup_free_ char *point = NULL;

		if (!mountinfo_dev(&line, &other) || other != dev)
			continue;
		point = root ? mountinfo_unescape(line.point) : NULL;
		if (root && !point)
			return -ENOMEM;
		if (root && str_is_below(point, root))
			continue;
		*beside = true;
		*above |= root && str_is_below(root, point);
	}
	return 0;
}

/*
 * Whether a filesystem is mounted anywhere but in this container. That it is would not show where the volumes'
 * namespace is ours and the container's mounts are among them, so those are left out, by their paths. What an engine
 * has mounted above the root, and not as the root, in a namespace of its own is the container's, too: Apptainer's /dev
 * is a directory of that.
 */
static int mount_class_is_elsewhere(const struct rootfs *rootfs, dev_t dev, bool *ret)
{
	const struct mount_map *mount_map = rootfs->mount_map;
	bool own = !mount_map->outside && mount_map->outside_fd < 0, above = false, beside = false;
	struct stat root;
	int r;

	r = own ? mount_class_read_inside(rootfs) : mount_class_read_outside(rootfs->mount_map);
	if (r == 0 && own)
		r = mount_class_read_root_path(rootfs);
	if (r == 0)
		r = mount_map_place_mounts(mountinfo_field_of(own ? mount_map->inside : mount_map->outside), dev,
					   own ? mount_map->root_path : NULL, &beside, &above);
	if (r < 0)
		return r;
	*ret = beside;
	if (above && fstat(rootfs->fd, &root) == 0 && root.st_dev != dev && mount_class_is_hidden(rootfs, dev))
		*ret = false;
	return 0;
}

/*
 * Whether the root of a mount is on the root filesystem's own. What a runtime makes in a volume may be seen where that
 * comes from, and a volume may bring a tmpfs along.
 */
static bool mount_class_is_mounted_on_root(const struct rootfs *rootfs, int fd)
{
	_cleanup_close_ int above = -1;
	uint64_t root, mount;

	if (mount_class_find_root(rootfs, &root) == 0 && mount_class_query(fd, "..", &mount))
		return mount == root;
	above = openat(fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
	return above >= 0 && mount_class_is_root(rootfs, above);
}

/* Whether the runtime has to mount a tmpfs at a directory, by the kernel's own path of that. */
static bool mount_class_is_named_tmpfs(const struct rootfs *rootfs, int fd)
{
	const struct mount_map *mount_map = rootfs->mount_map;
	_cleanup_free_ char *number = NULL, *path = NULL;

	return mount_class_read_root_path(rootfs) >= 0 && str_format(&number, "%d", fd) == 0 &&
	       fd_read_link_at(rootfs->proc_self_fd, number, &path) >= 0 && str_is_below(path, mount_map->root_path) &&
	       strv_contains(mount_map->tmpfs, path + strlen(mount_map->root_path));
}

/*
 * Whether the runtime made the tmpfs of a directory. It did if the configuration has a tmpfs at the kernel's own path
 * of the directory, and no bind mount's source is on the same tmpfs: an image's symlink may have led a bind mount
 * there. The runtime has just looked the sources up, so what file systems have cached of them is enough.
 */
static bool mount_class_is_runtimes(const struct rootfs *rootfs, int fd)
{
	const struct mount_map *mount_map = rootfs->mount_map;
	struct statx stx;
	struct statfs fs;
	struct stat st;

	if (!mount_map->tmpfs || mount_map->tmpfs->count == 0 || fstatfs(fd, &fs) < 0 || fs.f_type != TMPFS_MAGIC ||
	    !mount_class_is_named_tmpfs(rootfs, fd) || !mount_class_is_mounted_on_root(rootfs, fd))
		return false;
	if (mount_map->binds->count && fstat(fd, &st) < 0)
		return false;
	for (size_t i = 0; i < mount_map->binds->count; i++)
		if (statx(AT_FDCWD, mount_map->binds->items[i], AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, STATX_TYPE,
			  &stx) < 0 ||
		    makedev(stx.stx_dev_major, stx.stx_dev_minor) == st.st_dev)
			return false;
	return true;
}

static bool mount_class_is_kernels(const struct statfs *fs)
{
	return fs->f_type == PROC_SUPER_MAGIC || fs->f_type == SYSFS_MAGIC || fs->f_type == CGROUP_SUPER_MAGIC ||
	       fs->f_type == CGROUP2_SUPER_MAGIC;
}

bool mount_class_is_kernel(int fd)
{
	struct statfs fs;

	return fstatfs(fd, &fs) == 0 && mount_class_is_kernels(&fs);
}

/* A descriptor on another mount than the root's. */
static int mount_class_classify(const struct rootfs *rootfs, int fd, uint64_t mount, enum mount_class *ret)
{
	bool elsewhere = true, shared;
	struct statfs fs;
	struct stat st;
	int r = 0;

	if (fstatfs(fd, &fs) < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (fs.f_type == TMPFS_MAGIC)
		r = mount_class_is_elsewhere(rootfs, st.st_dev, &elsewhere);
	if (r == 0 && elsewhere)
		r = mount_class_is_shared(rootfs, fd, mount, &shared);
	if (r < 0)
		return r;
	if (!elsewhere)
		*ret = MOUNT_CLASS_OWN;
	else if (shared)
		*ret = MOUNT_CLASS_SHARED;
	else
		*ret = mount_class_is_kernels(&fs) ? MOUNT_CLASS_KERNEL : MOUNT_CLASS_VOLUME;
	return 0;
}

int mount_class_of(const struct rootfs *rootfs, int fd, enum mount_class *ret)
{
	uint64_t mount;
	bool same = false;
	int r;

	if (rootfs->mount_map && mount_class_is_runtimes(rootfs, fd)) {
		*ret = MOUNT_CLASS_OWN;
		return 0;
	}
	r = mount_class_compare_to_root(rootfs, fd, &mount, &same);
	if (r != 0)
		return r;
	if (!same && rootfs->mount_map && rootfs->mount_map->own == mount) {
		*ret = MOUNT_CLASS_OWN;
		return 0;
	}
	if (same || !rootfs->mount_map) {
		*ret = same ? MOUNT_CLASS_ROOT : MOUNT_CLASS_VOLUME;
		return 0;
	}
	return mount_class_classify(rootfs, fd, mount, ret);
}

bool mount_class_allows_create(enum mount_class kind)
{
	return kind == MOUNT_CLASS_ROOT || kind == MOUNT_CLASS_OWN;
}

int mount_class_check_create(const struct rootfs *rootfs, int fd)
{
	enum mount_class kind = MOUNT_CLASS_VOLUME;
	int r = mount_class_of(rootfs, fd, &kind);

	return r < 0 || mount_class_allows_create(kind) ? r : -EXDEV;
}

/* ---- the root ---- */

/* Repeats the mount at @point, below the root directory @old, on the new root. */
static int mount_class_repeat(const struct rootfs *rootfs, int old, const char *point)
{
	const char *path = point + strlen(rootfs->mount_map->root_path);
	_cleanup_close_ int from = openat2_open_path(old, path, O_PATH), to = -1;

	to = from < 0 ? from : openat2_open_path(rootfs->fd, path, O_PATH);
	if (to < 0)
		return to == -ENOENT ? 0 : to; /* covered by another mount */
	return mount_class_is_root(rootfs, to) ? mount_bind_recursive(rootfs->proc_self_fd, from, to) : 0;
}

/* Each brings what is mounted below itself, which mountinfo lists later. */
static int mount_class_repeat_all(const struct rootfs *rootfs, int old)
{
	struct mountinfo_line line;
	struct mountinfo_field text = mountinfo_field_of(rootfs->mount_map->inside);
	int r = 0;

	while (r == 0 && mountinfo_next(&text, &line)) {
		_cleanup_free_ char *point = mountinfo_unescape(line.point);

		if (!point)
			return -ENOMEM;
		if (str_is_below(point, rootfs->mount_map->root_path) && !streq(point, rootfs->mount_map->root_path))
			r = mount_class_repeat(rootfs, old, point);
	}
	return r == 0 ? mount_set_propagation(rootfs->proc_self_fd, rootfs->fd, MS_PRIVATE | MS_REC) : r;
}

/*
 * What is attached to a shared mount has copies on the mount's peers, which go when it goes, but only if nothing is
 * mounted on them. So the cover comes first, and what belongs on it after it is private.
 */
static int mount_class_cover_root(struct rootfs *rootfs)
{
	_cleanup_close_ int old = -1;
	struct mount_map *mount_map = rootfs->mount_map;
	int fd, r;

	r = mount_class_read_root_path(rootfs);
	if (r == 0)
		r = mount_class_read_inside(rootfs);
	if (r < 0)
		return r;
	fd = mount_bind_over_itself(rootfs->undo_log, rootfs->fd);
	if (fd < 0)
		return fd;
	old = rootfs->fd;
	rootfs->fd = fd;
	mount_map->root = rootfs->mount = 0;
	r = mount_class_repeat_all(rootfs, old);
	free(steal_ptr(mount_map->inside));
	return r;
}

int mount_map_make_private(struct rootfs *rootfs, bool keep)
{
	uint64_t root;
	bool shared;
	int r;

	/* A slave, since what the host mounts may be wanted here; a mount that was never shared does not change. */
	if (!keep && mount_set_propagation(rootfs->proc_self_fd, rootfs->fd, MS_SLAVE) == 0)
		return 0;
	r = mount_class_find_root(rootfs, &root);
	if (r == 0)
		r = mount_class_is_shared(rootfs, rootfs->fd, root, &shared);
	return r < 0 || !shared ? r : mount_class_cover_root(rootfs);
}
