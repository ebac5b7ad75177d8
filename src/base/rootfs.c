/* SPDX-License-Identifier: Apache-2.0 */

#include "base/rootfs.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <string.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/rootwalk.h"
#include "base/str.h"

enum {
	/* openat2(2) gives up with EAGAIN when a rename anywhere on the machine might have moved a ".." out of the root. */
	RACES_MAX = 128,
	TEMPORARY_NAMES_MAX = 16,
	RESTORED_FILE_MAX = 64 << 20,
};

enum deed_kind {
	DEED_DIRECTORY,
	DEED_FILE,
	DEED_SYMLINK,
	DEED_REPLACEMENT,
};

struct rootfs_deed {
	enum deed_kind kind;
	int parent;
	char *name;
	/* What was replaced: a readable descriptor of the old file, or where the old symlink pointed. */
	int old;
	char *old_link;
};

/* ---- what was done ---- */

static void deed_clear(struct rootfs_deed *deed)
{
	cleanup_closep(&deed->parent);
	cleanup_closep(&deed->old);
	free(deed->name);
	free(deed->old_link);
}

/* Takes over the descriptors and strings of @deed, also when it fails. */
static int remember(struct rootfs *rootfs, struct rootfs_deed *deed)
{
	struct rootfs_deed *deeds;

	deeds = deed->parent < 0 || !deed->name ? NULL : array_grow(rootfs->deeds, rootfs->deed_count, sizeof(*deeds));
	if (!deeds) {
		deed_clear(deed);
		return -ENOMEM;
	}
	rootfs->deeds = deeds;
	rootfs->deeds[rootfs->deed_count++] = *deed;
	return 0;
}

void rootfs_close(struct rootfs *rootfs)
{
	for (size_t i = 0; i < rootfs->deed_count; i++)
		deed_clear(&rootfs->deeds[i]);
	free(rootfs->deeds);
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

/* Registers what was just created; if that fails, takes it away again. */
static int finish_created(struct rootfs *rootfs, enum deed_kind kind, int *parent, const char *name)
{
	struct rootfs_deed deed = {.kind = kind, .parent = steal_fd(parent), .name = strdup(name), .old = -1};
	struct rootfs_deed *deeds = deed.name ? array_grow(rootfs->deeds, rootfs->deed_count, sizeof(*deeds)) : NULL;

	if (!deeds) {
		(void)unlinkat(deed.parent, name, kind == DEED_DIRECTORY ? AT_REMOVEDIR : 0);
		deed_clear(&deed);
		return -ENOMEM;
	}
	rootfs->deeds = deeds;
	rootfs->deeds[rootfs->deed_count++] = deed;
	return 0;
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
	_cleanup_close_ int child = -1;
	int r = 0;

	if (mkdirat(*parent, name, mode) < 0)
		return errno == EEXIST ? open_child_directory(*parent, name) : -errno;
	child = open_child_directory(*parent, name);
	r = finish_created(rootfs, DEED_DIRECTORY, parent, name);
	if (r < 0 || child < 0)
		return r < 0 ? r : child;
	return steal_fd(&child);
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
		made = openat(parent, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
		if (made < 0 && errno != EEXIST)
			return -errno;
		r = made < 0 ? 0 : finish_created(rootfs, DEED_FILE, &parent, name);
		if (r < 0)
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
	if (r < 0)
		return r;
	if (symlinkat(points_to, parent, name) < 0)
		return errno == EEXIST ? 0 : -errno;
	return finish_created(rootfs, DEED_SYMLINK, &parent, name);
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

static int open_temporary(int parent, mode_t mode, char **ret_name)
{
	for (int attempt = 0; attempt < TEMPORARY_NAMES_MAX; attempt++) {
		_cleanup_free_ char *name = NULL;
		uint64_t random;
		int fd;

		if (getrandom(&random, sizeof(random), GRND_NONBLOCK) != (ssize_t)sizeof(random))
			random = (uint64_t)getpid() << 8 | (uint64_t)attempt;
		if (str_format(&name, ".ctr-gpu-%016jx", (uintmax_t)random) < 0)
			return -ENOMEM;
		fd = openat(parent, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
		if (fd >= 0)
			*ret_name = steal_ptr(name);
		if (fd >= 0 || errno != EEXIST)
			return fd < 0 ? -errno : fd;
	}
	return -EEXIST;
}

static int fill(int fd, const struct span *parts, size_t count, mode_t mode)
{
	int r = fd_write_parts(fd, parts, count);

	if (r < 0)
		return r;
	return fchmod(fd, mode) < 0 ? -errno : 0; /* whatever the umask is */
}

/* What stands at @name now, so that rootfs_undo() can bring it back. */
static int keep_old(int parent, const char *name, struct rootfs_deed *deed)
{
	struct stat st;

	if (fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (S_ISDIR(st.st_mode))
		return -EISDIR;
	if (S_ISLNK(st.st_mode))
		return fd_read_link_at(parent, name, &deed->old_link);
	if (!S_ISREG(st.st_mode))
		return 0; /* a FIFO, a socket or a device in place of a file of text does not come back */
	deed->old = openat(parent, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	return deed->old < 0 ? -errno : 0;
}

/* Writes a temporary file and renames it to @name. */
static int write_and_rename(int parent, const char *name, const struct span *parts, size_t count, mode_t mode)
{
	_cleanup_free_ char *temporary = NULL;
	_cleanup_close_ int fd = -1;
	int r;

	fd = open_temporary(parent, mode, &temporary);
	if (fd < 0)
		return fd;
	r = fill(fd, parts, count, mode);
	if (r == 0 && renameat(parent, temporary, parent, name) < 0)
		r = -errno;
	if (r < 0)
		(void)unlinkat(parent, temporary, 0);
	return r;
}

int rootfs_replace_file(struct rootfs *rootfs, const char *path, const struct span *parts, size_t count, mode_t mode)
{
	struct rootfs_deed deed = {.kind = DEED_REPLACEMENT, .parent = -1, .old = -1};
	int r;

	r = make_parent(rootfs, path, true, &deed.parent, &deed.name);
	if (r == 0)
		r = keep_old(deed.parent, deed.name, &deed);
	if (r < 0) {
		deed_clear(&deed);
		return r;
	}
	r = remember(rootfs, &deed);
	if (r < 0)
		return r;
	r = write_and_rename(deed.parent, deed.name, parts, count, mode);
	if (r < 0)
		deed_clear(&rootfs->deeds[--rootfs->deed_count]);
	return r;
}

/* ---- taking back ---- */

/* The old file, as far as a descriptor of it tells. Return: whether @name is the old one again. */
static bool restore(const struct rootfs_deed *deed)
{
	_cleanup_free_ char *temporary = NULL, *data = NULL;
	_cleanup_close_ int fd = -1;
	struct span content;
	struct stat st;
	size_t size;

	if (fstat(deed->old, &st) < 0 || fd_read_all(deed->old, RESTORED_FILE_MAX, &data, &size) < 0)
		return false;
	content = (struct span){(const unsigned char *)data, size};
	fd = open_temporary(deed->parent, 0600, &temporary);
	if (fd < 0)
		return false;
	if (fchown(fd, st.st_uid, st.st_gid) == 0 && fill(fd, &content, 1, st.st_mode & 07777) == 0 &&
	    renameat(deed->parent, temporary, deed->parent, deed->name) == 0)
		return true;
	(void)unlinkat(deed->parent, temporary, 0);
	return false;
}

static void undo_replacement(const struct rootfs_deed *deed)
{
	if (deed->old >= 0 && restore(deed))
		return;
	(void)unlinkat(deed->parent, deed->name, 0);
	if (deed->old_link && symlinkat(deed->old_link, deed->parent, deed->name) < 0)
		return;
}

static void undo_file(const struct rootfs_deed *deed)
{
	struct stat st;

	if (fstatat(deed->parent, deed->name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode) && st.st_size == 0)
		(void)unlinkat(deed->parent, deed->name, 0);
}

static void undo(const struct rootfs_deed *deed)
{
	struct stat st;

	switch (deed->kind) {
	case DEED_DIRECTORY:
		(void)unlinkat(deed->parent, deed->name, AT_REMOVEDIR);
		break;
	case DEED_FILE:
		undo_file(deed);
		break;
	case DEED_SYMLINK:
		if (fstatat(deed->parent, deed->name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode))
			(void)unlinkat(deed->parent, deed->name, 0);
		break;
	case DEED_REPLACEMENT:
		undo_replacement(deed);
		break;
	}
}

void rootfs_undo(struct rootfs *rootfs)
{
	while (rootfs->deed_count > 0) {
		struct rootfs_deed *deed = &rootfs->deeds[--rootfs->deed_count];

		undo(deed);
		deed_clear(deed);
	}
}
