/* SPDX-License-Identifier: Apache-2.0 */

#include "base/rootfs.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <string.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/rootwalk.h"
#include "base/str.h"

enum {
	/* openat2(2) gives up with EAGAIN when a rename anywhere on the machine might have moved a ".." out of the root. */
	RACES_MAX = 128,
};

/* With a number in the place of the question mark. */
#define TEMPORARY ".ctr-gpu-?"
enum { TEMPORARY_SIZE = sizeof(TEMPORARY) };

void rootfs_close(struct rootfs *rootfs)
{
	cleanup_closep(&rootfs->fd);
	*rootfs = ROOTFS_CLOSED;
}

int rootfs_open(int dirfd, const char *path, struct rootfs *ret)
{
	struct rootfs rootfs = ROOTFS_CLOSED;

	rootfs.fd = openat(dirfd, path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (rootfs.fd < 0)
		return -errno;
	*ret = rootfs;
	return 0;
}

/* ---- resolving ---- */

int rootfs_open_path(const struct rootfs *rootfs, const char *path, int flags)
{
	struct open_how how = {
		.flags = (uint64_t)(unsigned)(flags | O_CLOEXEC),
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
	};

	for (int race = 0; race < RACES_MAX; race++) {
		int fd = (int)syscall(SYS_openat2, rootfs->fd, path, &how, sizeof(how));

		if (fd >= 0)
			return fd;
		/* Kernels before 5.6; seccomp filters that do not know the call. */
		if (errno == ENOSYS || errno == EPERM)
			return rootwalk_open(rootfs->fd, path, flags);
		if (errno != EAGAIN && errno != EINTR)
			return -errno;
	}
	return -EAGAIN;
}

/* Splits "/a/b" into "/a" and "b"; the name is not "", "." or "..", so that creating it creates nothing else. */
static int split(const char *path, char **ret_parent, char **ret_name)
{
	_cleanup_free_ char *name = NULL, *parent = NULL;
	size_t end = strlen(path), start;

	while (end > 0 && path[end - 1] == '/')
		end--;
	for (start = end; start > 0 && path[start - 1] != '/';)
		start--;
	name = strndup(path + start, end - start);
	parent = strndup(path, start);
	if (!name || !parent)
		return -ENOMEM;
	if (!*name || streq(name, ".") || streq(name, ".."))
		return -EINVAL;
	*ret_parent = steal_ptr(parent);
	*ret_name = steal_ptr(name);
	return 0;
}

/* ---- creating ---- */

/* The kernel numbers mounts since 5.8. */
bool rootfs_is_on_root_mount(const struct rootfs *rootfs, int fd)
{
	struct statx root, other;

	if (statx(rootfs->fd, "", AT_EMPTY_PATH, STATX_INO | STATX_MNT_ID, &root) < 0 ||
	    statx(fd, "", AT_EMPTY_PATH, STATX_INO | STATX_MNT_ID, &other) < 0)
		return false;
	if (!(root.stx_mask & other.stx_mask & STATX_MNT_ID))
		return root.stx_dev_major == other.stx_dev_major && root.stx_dev_minor == other.stx_dev_minor;
	return root.stx_mnt_id == other.stx_mnt_id;
}

static bool is_of_type(const struct deed *deed, mode_t type, struct stat *ret)
{
	return fstatat(deed->fds[0], deed->name, ret, AT_SYMLINK_NOFOLLOW) == 0 && (ret->st_mode & S_IFMT) == type;
}

static void undo_directory(const struct deeds *deeds, const struct deed *deed)
{
	(void)deeds;
	(void)unlinkat(deed->fds[0], deed->name, AT_REMOVEDIR);
}

static void undo_file(const struct deeds *deeds, const struct deed *deed)
{
	struct stat st;

	(void)deeds;
	if (is_of_type(deed, S_IFREG, &st) && st.st_size == 0)
		(void)unlinkat(deed->fds[0], deed->name, 0);
}

static void undo_symlink(const struct deeds *deeds, const struct deed *deed)
{
	struct stat st;

	(void)deeds;
	if (is_of_type(deed, S_IFLNK, &st))
		(void)unlinkat(deed->fds[0], deed->name, 0);
}

/* Writes down that @name is about to be made in @parent. */
static int announce(struct rootfs *rootfs, void (*undo)(const struct deeds *, const struct deed *), int parent, const char *name)
{
	const struct deed deed = {.undo = undo, .fds = {parent, -1, -1}, .as_owner = rootfs->owned};

	return deeds_add(rootfs->deeds, &deed, name);
}

static int open_child_directory(int parent, const char *name)
{
	struct stat st;
	int fd = openat(parent, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd >= 0)
		return fd;
	if (errno != ENOTDIR)
		return -errno;
	if (fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode))
		return -ENOENT; /* it led nowhere, or we had not come here */
	return -ENOTDIR;
}

/* Takes over @parent if it made something there. */
static int make_child_directory(struct rootfs *rootfs, int *parent, const char *name, mode_t mode)
{
	int at = *parent, r;

	r = announce(rootfs, undo_directory, at, name);
	if (r < 0)
		return r;
	if (mkdirat(at, name, mode) == 0) {
		*parent = -1;
		return open_child_directory(at, name);
	}
	r = -errno;
	deeds_drop(rootfs->deeds);
	return r == -EEXIST ? open_child_directory(at, name) : r;
}

/* rootfs_make_directory(); with @own, what is missing on a volume is -EXDEV, and so is a directory that is there. */
static int make_directory(struct rootfs *rootfs, const char *path, mode_t mode, bool own)
{
	_cleanup_free_ char *above = NULL, *name = NULL;
	_cleanup_close_ int parent = -1, fd = -1;
	int r;

	fd = rootfs_open_path(rootfs, *path ? path : "/", O_PATH | O_DIRECTORY);
	if (fd >= 0)
		return own && !rootfs_is_on_root_mount(rootfs, fd) ? -EXDEV : steal_fd(&fd);
	if (fd != -ENOENT)
		return fd;
	r = split(path, &above, &name);
	if (r < 0)
		return r;
	parent = make_directory(rootfs, above, mode, own);
	return parent < 0 ? parent : make_child_directory(rootfs, &parent, name, mode);
}

int rootfs_make_directory(struct rootfs *rootfs, const char *path, mode_t mode, int *ret_fd)
{
	int fd = make_directory(rootfs, path, mode, false);

	if (fd < 0)
		return fd;
	*ret_fd = fd;
	return 0;
}

/* The directory that holds @path, made where missing, and the name in it. */
static int make_parent(struct rootfs *rootfs, const char *path, bool own, int *ret_parent, char **ret_name)
{
	_cleanup_free_ char *above = NULL, *name = NULL;
	int fd, r;

	r = split(path, &above, &name);
	if (r < 0)
		return r;
	fd = make_directory(rootfs, above, 0755, own);
	if (fd < 0)
		return fd;
	*ret_parent = fd;
	*ret_name = steal_ptr(name);
	return 0;
}

/* Something to mount onto, but never a directory for a file: the kernel would refuse that with a bare ENOTDIR. */
static int open_file(const struct rootfs *rootfs, const char *path)
{
	_cleanup_close_ int fd = -1;
	struct stat st;

	fd = rootfs_open_path(rootfs, path, O_PATH);
	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	return S_ISDIR(st.st_mode) ? -EISDIR : steal_fd(&fd);
}

int rootfs_make_file(struct rootfs *rootfs, const char *path, mode_t mode, int *ret_fd)
{
	_cleanup_close_ int parent = -1, made = -1;
	_cleanup_free_ char *name = NULL;
	int fd, r;

	fd = open_file(rootfs, path);
	if (fd == -ENOENT) {
		r = make_parent(rootfs, path, false, &parent, &name);
		if (r < 0)
			return r;
		r = announce(rootfs, undo_file, parent, name);
		if (r < 0)
			return r;
		made = openat(parent, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
		if (made >= 0) {
			(void)steal_fd(&parent);
		} else {
			r = -errno;
			deeds_drop(rootfs->deeds);
		}
		if (r < 0 && r != -EEXIST)
			return r;
		/* With EEXIST: a dangling symlink, so -ENOENT again, or somebody was faster. */
		fd = open_file(rootfs, path);
	}
	if (fd < 0)
		return fd;
	*ret_fd = fd;
	return 0;
}

int rootfs_make_symlink(struct rootfs *rootfs, const char *path, const char *points_to)
{
	_cleanup_close_ int parent = -1;
	_cleanup_free_ char *name = NULL;
	int r;

	r = make_parent(rootfs, path, true, &parent, &name);
	if (r == 0)
		r = announce(rootfs, undo_symlink, parent, name);
	if (r < 0)
		return r;
	if (symlinkat(points_to, parent, name) == 0) {
		(void)steal_fd(&parent);
		return 0;
	}
	r = -errno;
	deeds_drop(rootfs->deeds);
	return r == -EEXIST ? 0 : r;
}

/* ---- reading and writing ---- */

/*
 * A readable descriptor of what @handle (O_PATH) is. The image may hold device nodes, and opening one may start a watchdog;
 * so nothing is opened before its type is known, and then by its descriptor rather than by a path that may have changed.
 */
static int reopen(const struct rootfs *rootfs, const char *path, int handle)
{
	const int flags = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
	_cleanup_free_ char *number = NULL;
	int fd;

	if (rootfs->proc_self_fd < 0)
		return rootfs_open_path(rootfs, path, flags);
	if (str_format(&number, "%d", handle) < 0)
		return -ENOMEM;
	fd = openat(rootfs->proc_self_fd, number, flags);
	return fd < 0 ? -errno : fd;
}

int rootfs_read_file(const struct rootfs *rootfs, const char *path, size_t max, char **ret_data, size_t *ret_size)
{
	_cleanup_close_ int handle = -1, fd = -1;
	struct stat expected, st;

	handle = rootfs_open_path(rootfs, path, O_PATH);
	if (handle < 0)
		return handle;
	if (fstat(handle, &expected) < 0)
		return -errno;
	if (!S_ISREG(expected.st_mode))
		return -EINVAL;
	fd = reopen(rootfs, path, handle);
	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_dev != expected.st_dev || st.st_ino != expected.st_ino)
		return -EAGAIN;
	return fd_read_all(fd, max, ret_data, ret_size);
}

/*
 * Temporary files have names that come back, so that one whose writer was killed is found by the next. As long as it is written,
 * a file is locked. @name must be a regular file: an image may have anything else there. Return: whether it is gone.
 */
static bool sweep(int parent, const char *name)
{
	_cleanup_close_ int fd = -1;
	struct stat st;

	if (fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
		return false;
	fd = openat(parent, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	return fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0 && unlinkat(parent, name, 0) == 0;
}

/* Whether nobody took a file that was just made for an old one; filesystems without locks have nobody who could. */
static bool lock(int fd)
{
	struct stat st;

	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return errno != EWOULDBLOCK;
	return fstat(fd, &st) == 0 && st.st_nlink > 0;
}

/* The parent is that of the deed below. */
static void undo_temporary(const struct deeds *deeds, const struct deed *deed)
{
	int parent = deed[-1].fds[0];

	(void)deeds;
	if (deed->number)
		(void)unlinkat(parent, deed->name, 0);
	else
		(void)sweep(parent, deed->name);
}

/* @name: a buffer that has the name without its number. Return: a descriptor of a new file; -EEXIST; negative errno. */
static int try_temporary(int parent, mode_t mode, char name[TEMPORARY_SIZE], char number, struct deeds *deeds)
{
	static const struct deed temporary = {.undo = undo_temporary, .fds = {-1, -1, -1}};
	_cleanup_close_ int fd = -1;
	int r = 0;

	name[TEMPORARY_SIZE - 2] = number;
	if (deeds)
		r = deeds_add(deeds, &temporary, name);
	if (r < 0)
		return r;
	do
		fd = openat(parent, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
	while (fd < 0 && errno == EEXIST && sweep(parent, name));
	r = fd < 0 ? -errno : 0;
	if (deeds && r == 0)
		deeds_mark(deeds, true);
	if (r == 0 && lock(fd))
		return steal_fd(&fd);
	if (deeds)
		deeds_drop(deeds);
	return r < 0 ? r : -EEXIST;
}

/* With @deeds, the file is the newest deed there. */
static int open_temporary(int parent, mode_t mode, char name[TEMPORARY_SIZE], struct deeds *deeds)
{
	int r = -EEXIST;

	memcpy(name, TEMPORARY, TEMPORARY_SIZE);
	for (char number = '0'; r == -EEXIST && number <= '9'; number++)
		r = try_temporary(parent, mode, name, number, deeds);
	return r;
}

static int fill(int fd, const struct span *parts, size_t count, mode_t mode)
{
	int r = fd_write_parts(fd, parts, count);

	if (r < 0)
		return r;
	return fchmod(fd, mode) < 0 ? -errno : 0; /* whatever the umask is */
}

/* What stands at @name now: a file to read, or a handle of anything else. Return: descriptor; -ENOENT; -EISDIR; negative errno. */
static int open_old(int parent, const char *name)
{
	struct stat st;
	int fd;

	if (fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (S_ISDIR(st.st_mode))
		return -EISDIR;
	fd = openat(parent, name, (S_ISREG(st.st_mode) ? O_RDONLY : O_PATH) | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* Writes a temporary file and renames it to @name. */
static int write_and_rename(struct deeds *deeds, int parent, const char *name, const struct span *parts, size_t count, mode_t mode)
{
	char temporary[TEMPORARY_SIZE];
	_cleanup_close_ int fd = -1;
	int r;

	fd = open_temporary(parent, mode, temporary, deeds);
	if (fd < 0)
		return fd;
	r = fill(fd, parts, count, mode);
	if (r == 0 && renameat(parent, temporary, parent, name) < 0)
		r = -errno;
	if (r < 0)
		(void)unlinkat(parent, temporary, 0);
	deeds_drop(deeds);
	return r;
}

/* The old file, as far as a descriptor of it tells. Return: whether @name is the old one again. */
static bool restore(int parent, const char *name, int old, const struct stat *st)
{
	char temporary[TEMPORARY_SIZE], buffer[4096];
	_cleanup_close_ int fd = -1;
	off_t at = 0;
	ssize_t got;

	fd = open_temporary(parent, 0600, temporary, NULL);
	if (fd < 0)
		return false;
	while ((got = pread(old, buffer, sizeof(buffer), at)) > 0 && fd_write_all(fd, buffer, (size_t)got) == 0)
		at += got;
	/* Who may not give files away leaves the caller's, with the right content. */
	if (fchown(fd, st->st_uid, st->st_gid) < 0 && errno != EPERM)
		got = -1;
	if (got == 0 && fchmod(fd, st->st_mode & 07777) == 0 && renameat(parent, temporary, parent, name) == 0)
		return true;
	(void)unlinkat(parent, temporary, 0);
	return false;
}

static void undo_replacement(const struct deeds *deeds, const struct deed *deed)
{
	const int parent = deed->fds[0], old = deed->fds[1];
	struct stat before = {0}, now;
	char link[4096];
	ssize_t length;

	(void)deeds;
	if (old >= 0 && fstat(old, &before) == 0 && fstatat(parent, deed->name, &now, AT_SYMLINK_NOFOLLOW) == 0 &&
	    now.st_dev == before.st_dev && now.st_ino == before.st_ino)
		return; /* it had not come to that */
	if (S_ISREG(before.st_mode) && restore(parent, deed->name, old, &before))
		return;
	(void)unlinkat(parent, deed->name, 0);
	length = S_ISLNK(before.st_mode) ? readlinkat(old, "", link, sizeof(link) - 1) : -1;
	if (length < 0)
		return;
	link[length] = '\0';
	(void)!symlinkat(link, parent, deed->name);
}

int rootfs_replace_file(struct rootfs *rootfs, const char *path, const struct span *parts, size_t count, mode_t mode)
{
	_cleanup_close_ int parent = -1, old = -1;
	_cleanup_free_ char *name = NULL;
	struct deed deed;
	int r;

	r = make_parent(rootfs, path, true, &parent, &name);
	if (r < 0)
		return r;
	old = open_old(parent, name);
	if (old < 0 && old != -ENOENT)
		return old;
	deed = (struct deed){.undo = undo_replacement, .fds = {parent, old < 0 ? -1 : old, -1}, .as_owner = rootfs->owned};
	r = deeds_add(rootfs->deeds, &deed, name);
	if (r < 0)
		return r;
	r = write_and_rename(rootfs->deeds, parent, name, parts, count, mode);
	if (r < 0) {
		deeds_drop(rootfs->deeds);
		return r;
	}
	(void)steal_fd(&parent);
	(void)steal_fd(&old);
	return 0;
}
