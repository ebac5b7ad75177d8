/* SPDX-License-Identifier: Apache-2.0 */

#include "base/mount.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <linux/magic.h>

#include "base/fd.h"
#include "base/str.h"

enum { NUMBER_MAX = 16 }; /* a descriptor in decimal */

/* What a kind of mount is not allowed to do, in the words of mount_setattr(2), mount(2) and statvfs(3). */
static const struct {
	unsigned attributes;
	unsigned long flags;
} kinds[] = {
	[MOUNT_READ_ONLY] = {MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, MS_RDONLY | MS_NOSUID | MS_NODEV},
	[MOUNT_DEVICE] = {MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, MS_NOSUID | MS_NOEXEC},
	[MOUNT_DATA] = {MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC,
			MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC},
};
/* statvfs(3) reports these under the numbers of mount(2). */
#define SAME(a, b) ((unsigned long)(a) == (unsigned long)(b))
_Static_assert(SAME(ST_RDONLY, MS_RDONLY) && SAME(ST_NOSUID, MS_NOSUID) && SAME(ST_NODEV, MS_NODEV) &&
		       SAME(ST_NOEXEC, MS_NOEXEC) && SAME(ST_NOATIME, MS_NOATIME) && SAME(ST_NODIRATIME, MS_NODIRATIME),
	       "flags of statvfs are flags of mount");

static unsigned long flags_of(const struct mount_source *source)
{
	return kinds[source->kind].flags | (source->noexec ? MS_NOEXEC : 0);
}

static bool same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Kernels before 5.2 and 5.12; seccomp filters that do not know the calls answer EPERM, and then mount(2) must decide. */
static bool lacks_call(int error)
{
	return error == ENOSYS || error == EPERM;
}

void mount_source_close(struct mount_source *source)
{
	cleanup_closep(&source->tree);
	source->tree = -1;
}

int mount_open_proc_self_fd(void)
{
	_cleanup_close_ int fd = -1;
	struct statfs fs;

	fd = open("/proc/self/fd", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || fstatfs(fd, &fs) < 0)
		return -errno;
	return fs.f_type == PROC_SUPER_MAGIC ? steal_fd(&fd) : -ENOTDIR;
}

/* ---- detached mounts ---- */

static int restrict_tree(const struct mount_source *source, int tree)
{
	struct mount_attr attributes = {
		.attr_set = kinds[source->kind].attributes | (source->noexec ? MOUNT_ATTR_NOEXEC : 0),
		.propagation = MS_PRIVATE,
	};

	return mount_setattr(tree, "", AT_EMPTY_PATH, &attributes, sizeof(attributes)) < 0 ? -errno : 0;
}

/* A copy of the mount at @path below @dirfd, with its flags. Leaves tree at -1 where the kernel cannot do that. */
static int clone_tree(struct mount_source *source, int dirfd, const char *path)
{
	_cleanup_close_ int tree = -1;
	int r;

	tree = open_tree(dirfd, path, AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	r = tree < 0 ? -errno : restrict_tree(source, tree);
	if (r < 0)
		return lacks_call(-r) ? 0 : r;
	source->tree = steal_fd(&tree);
	return 0;
}

/* What is looked at is what was cloned; without a clone, what mount(2) will find at the path is compared again then. */
static int look_at(struct mount_source *source)
{
	if (source->tree >= 0)
		return fstat(source->tree, &source->st) < 0 ? -errno : 0;
	return stat(source->path, &source->st) < 0 ? -errno : 0;
}

int mount_source_open(const char *path, enum mount_kind kind, bool noexec, struct mount_source *ret)
{
	struct mount_source source = {.tree = -1, .path = path, .kind = kind, .noexec = noexec};
	int r;

	r = clone_tree(&source, AT_FDCWD, path);
	if (r == 0)
		r = look_at(&source);
	if (r < 0) {
		mount_source_close(&source);
		return r;
	}
	*ret = source;
	return 0;
}

bool mount_is_there(const struct mount_source *source, int target)
{
	struct statvfs fs;
	struct stat st;

	if (fstat(target, &st) < 0 || fstatvfs(target, &fs) < 0)
		return false;
	if (source->kind == MOUNT_DEVICE)
		return S_ISCHR(st.st_mode) && st.st_rdev == source->st.st_rdev && !(fs.f_flag & ST_NODEV);
	if (!same_file(&st, &source->st))
		return false;
	return (fs.f_flag & flags_of(source)) == flags_of(source);
}

/* ---- mount(2) between descriptors ---- */

/*
 * mount(2) takes paths only, so the working directory becomes /proc/self/fd, where "7" is descriptor 7. Return: a handle of
 * the old working directory, for leave_fds(); negative errno.
 */
static int enter_fds(int proc_self_fd)
{
	_cleanup_close_ int old = -1;

	old = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (old < 0 || fchdir(proc_self_fd) < 0)
		return -errno;
	return steal_fd(&old);
}

static void leave_fds(int old)
{
	if (fchdir(old) < 0 && chdir("/") < 0)
		abort(); /* a relative path would now name our descriptors */
	(void)close(old);
}

/* One mount(2) on descriptor @target, from descriptor @origin if that is not -1. */
static int mount_fds(int proc_self_fd, int origin, int target, const char *type, unsigned long flags)
{
	char from[NUMBER_MAX], onto[NUMBER_MAX];
	int old, r;

	(void)snprintf(from, sizeof(from), "%d", origin);
	(void)snprintf(onto, sizeof(onto), "%d", target);
	old = enter_fds(proc_self_fd);
	if (old < 0)
		return old;
	r = mount(origin < 0 ? "none" : from, onto, type, flags, NULL) < 0 ? -errno : 0;
	leave_fds(old);
	return r;
}

static int unmount_fd(int proc_self_fd, int fd)
{
	char number[NUMBER_MAX];
	int old, r;

	(void)snprintf(number, sizeof(number), "%d", fd);
	old = enter_fds(proc_self_fd);
	if (old < 0)
		return old;
	r = umount2(number, MNT_DETACH) < 0 ? -errno : 0;
	leave_fds(old);
	return r;
}

/* What was not attached after all is no mount of this namespace, and umount2(2) refuses it. */
static void undo_mount(const struct deeds *deeds, const struct deed *deed)
{
	(void)unmount_fd(deeds->proc_self_fd, deed->fds[0]);
}

/* Writes down that @mount is about to be attached, or was a moment ago. */
static int announce(const struct rootfs *rootfs, int mount)
{
	const struct deed deed = {.undo = undo_mount, .fds = {mount, -1, -1}};

	return deeds_add(rootfs->deeds, &deed, NULL);
}

static int move_fds(int mount, int target)
{
	return move_mount(mount, "", target, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0 ? -errno : 0;
}

/* Takes over @mount when it is attached. */
static int attach(const struct rootfs *rootfs, int *mount, int target)
{
	int r = announce(rootfs, *mount);

	if (r < 0)
		return r;
	r = move_fds(*mount, target);
	if (r < 0)
		deeds_drop(rootfs->deeds);
	else
		(void)steal_fd(mount);
	return r;
}

/* A bind mount has the flags of where it came from until it is remounted; some of those may be locked, so all are kept. */
static int restrict_bind(const struct mount_source *source, int proc_self_fd, int fd)
{
	const unsigned long kept = ST_RDONLY | ST_NOSUID | ST_NODEV | ST_NOEXEC | ST_NOATIME | ST_NODIRATIME;
	unsigned long flags;
	struct statvfs fs;
	int r;

	if (fstatvfs(fd, &fs) < 0)
		return -errno;
	flags = (fs.f_flag & kept) | (fs.f_flag & ST_RELATIME ? MS_RELATIME : 0) | flags_of(source);
	r = mount_fds(proc_self_fd, -1, fd, NULL, MS_REMOUNT | MS_BIND | flags);
	if (r == 0)
		r = mount_fds(proc_self_fd, -1, fd, NULL, MS_PRIVATE);
	return r;
}

/* After a bind mount: what lies at @path now must be the source; it gets its flags, and becomes a deed. */
static int adopt_bind(const struct mount_source *source, const struct rootfs *rootfs, const char *path)
{
	_cleanup_close_ int fd = -1;
	struct stat st;
	int r;

	fd = rootfs_open_path(rootfs, path, O_PATH);
	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!same_file(&st, &source->st))
		return -ESTALE;
	r = announce(rootfs, fd);
	if (r == 0) {
		r = restrict_bind(source, rootfs->proc_self_fd, fd);
		if (r == 0) {
			(void)steal_fd(&fd);
			return 0;
		}
		deeds_drop(rootfs->deeds);
	}
	(void)unmount_fd(rootfs->proc_self_fd, fd);
	return r;
}

/* The kernel binds only what lies in the current mount namespace, so the path is opened again and compared. */
static int bind_source(const struct mount_source *source, const struct rootfs *rootfs, const char *path, int target)
{
	_cleanup_close_ int origin = -1;
	struct stat st;
	int r;

	origin = open(source->path, O_PATH | O_CLOEXEC);
	if (origin < 0 || fstat(origin, &st) < 0)
		return -errno;
	if (!same_file(&st, &source->st))
		return -ESTALE;
	r = mount_fds(rootfs->proc_self_fd, origin, target, NULL, MS_BIND);
	return r < 0 ? r : adopt_bind(source, rootfs, path);
}

/* ---- attaching ---- */

int mount_attach(struct mount_source *source, const struct rootfs *rootfs, const char *path, int target)
{
	if (source->tree >= 0)
		return attach(rootfs, &source->tree, target);
	return bind_source(source, rootfs, path, target);
}

/* ---- bytes of ours ---- */

static int make_tmpfs(void)
{
	_cleanup_close_ int context = -1;
	int fd;

	context = fsopen("tmpfs", FSOPEN_CLOEXEC);
	if (context < 0 || fsconfig(context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return -errno;
	fd = fsmount(context, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
	return fd < 0 ? -errno : fd;
}

/*
 * open_tree(2) copies from mounts of the namespace only (until 6.15), so the tmpfs covers @directory for a moment. The tmpfs is
 * among the deeds.
 */
static int cover(const struct rootfs *rootfs, const char *path, int directory)
{
	_cleanup_close_ int tmpfs = -1;
	struct statfs fs;
	int fd, r;

	fd = tmpfs = make_tmpfs();
	if (tmpfs >= 0) {
		r = attach(rootfs, &tmpfs, directory);
		return r < 0 ? r : fd;
	}
	if (!lacks_call(-tmpfs))
		return steal_fd(&tmpfs);
	r = mount_fds(rootfs->proc_self_fd, -1, directory, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC);
	if (r < 0)
		return r;
	tmpfs = rootfs_open_path(rootfs, path, O_PATH | O_DIRECTORY);
	if (tmpfs < 0)
		return steal_fd(&tmpfs);
	if (fstatfs(tmpfs, &fs) == 0 && fs.f_type != TMPFS_MAGIC)
		return -ESTALE;
	r = announce(rootfs, tmpfs);
	if (r < 0)
		(void)unmount_fd(rootfs->proc_self_fd, tmpfs);
	return r < 0 ? r : steal_fd(&tmpfs);
}

static void uncover(const struct rootfs *rootfs, int tmpfs)
{
	(void)unmount_fd(rootfs->proc_self_fd, tmpfs);
	deeds_drop(rootfs->deeds);
	(void)close(tmpfs);
}

static int write_data(int tmpfs, const struct span *parts, size_t count)
{
	_cleanup_close_ int fd = -1;
	int r;

	fd = openat(tmpfs, "data", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (fd < 0)
		return -errno;
	r = fd_write_parts(fd, parts, count);
	if (r < 0)
		return r;
	return fchmod(fd, 0644) < 0 ? -errno : 0;
}

/* A clone of the file, or a bind mount of it that already lies on @target, below the cover. */
static int take_data(struct mount_source *source, const struct rootfs *rootfs, int tmpfs, int target)
{
	_cleanup_close_ int origin = -1;
	int r;

	origin = openat(tmpfs, "data", O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (origin < 0 || fstat(origin, &source->st) < 0)
		return -errno;
	r = clone_tree(source, origin, "");
	if (r == 0 && source->tree < 0)
		r = mount_fds(rootfs->proc_self_fd, origin, target, NULL, MS_BIND);
	return r;
}

int mount_attach_data(const struct rootfs *rootfs, const char *path, int target, const struct span *parts, size_t count)
{
	_cleanup_(mount_source_close) struct mount_source source = {.tree = -1, .kind = MOUNT_DATA};
	_cleanup_close_ int directory = -1;
	_cleanup_free_ char *above = NULL;
	const char *name = strrchr(path, '/');
	int tmpfs, r;

	if (!name || name == path)
		return -EINVAL;
	above = strndup(path, (size_t)(name - path));
	if (!above)
		return -ENOMEM;
	directory = rootfs_open_path(rootfs, above, O_PATH | O_DIRECTORY);
	if (directory < 0)
		return directory;
	tmpfs = cover(rootfs, above, directory);
	if (tmpfs < 0)
		return tmpfs;
	r = write_data(tmpfs, parts, count);
	if (r == 0)
		r = take_data(&source, rootfs, tmpfs, target);
	uncover(rootfs, tmpfs);
	if (r == 0)
		r = source.tree >= 0 ? attach(rootfs, &source.tree, target) : adopt_bind(&source, rootfs, path);
	return r;
}

int mount_attach_empty(const struct rootfs *rootfs, const char *path, int target)
{
	const struct mount_source source = {.tree = -1, .kind = MOUNT_DATA};
	int tmpfs, r;

	tmpfs = cover(rootfs, path, target);
	if (tmpfs < 0)
		return tmpfs;
	r = restrict_tree(&source, tmpfs);
	if (r < 0 && lacks_call(-r))
		r = restrict_bind(&source, rootfs->proc_self_fd, tmpfs);
	if (r < 0)
		uncover(rootfs, tmpfs);
	return r;
}
