/* SPDX-License-Identifier: Apache-2.0 */

#include "base/rootfs.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/ground.h"
#include "base/rootwalk.h"
#include "base/str.h"

enum {
	/* openat2(2) gives up with EAGAIN when a rename anywhere on the machine might have moved a ".." out of the root. */
	RACES_MAX = 128,
	TEMPORARY_NAMES_MAX = 16,
	RESTORED_FILE_MAX = 64 << 20,
	LINKS_MAX = 40, /* as the kernel's MAXSYMLINKS */
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

static int open_resolved(const struct rootfs *rootfs, const char *path, int flags, uint64_t resolve)
{
	struct open_how how = {.flags = (uint64_t)(unsigned)(flags | O_CLOEXEC), .resolve = RESOLVE_IN_ROOT | resolve};

	for (int race = 0; race < RACES_MAX; race++) {
		int fd = (int)syscall(SYS_openat2, rootfs->fd, path, &how, sizeof(how));

		if (fd >= 0)
			return fd;
		if (errno != EAGAIN && errno != EINTR)
			return -errno;
	}
	return -EAGAIN;
}

int rootfs_open_path(const struct rootfs *rootfs, const char *path, int flags)
{
	int fd = open_resolved(rootfs, path, flags, RESOLVE_NO_MAGICLINKS);

	/* Kernels before 5.6; seccomp filters that do not know the call. */
	return fd == -ENOSYS || fd == -EPERM ? rootwalk_open(rootfs->fd, path, flags) : fd;
}

/* A path of ours, which /proc tells of what is open there. */
static int read_path(int fd, char **ret)
{
	char link[32];

	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	return fd_read_link_at(AT_FDCWD, link, ret);
}

/* Of what exists. */
static int find_real_path(const struct rootfs *rootfs, const char *path, char **ret)
{
	_cleanup_free_ char *root = NULL, *real = NULL;
	_cleanup_close_ int fd = rootfs_open_path(rootfs, path, O_PATH);
	size_t size;
	int r;

	if (fd < 0)
		return fd;
	r = read_path(rootfs->fd, &root);
	if (r == 0)
		r = read_path(fd, &real);
	if (r < 0)
		return r;
	size = streq(root, "/") ? 0 : strlen(root);
	if (strncmp(root, real, size) != 0 || (real[size] != '/' && real[size] != '\0'))
		return -ESTALE;
	*ret = strdup(real + size);
	return *ret ? 0 : -ENOMEM;
}

int rootfs_real_path(const struct rootfs *rootfs, const char *path, char **ret)
{
	_cleanup_close_ int fd = open_resolved(rootfs, path, O_PATH, RESOLVE_NO_SYMLINKS);
	_cleanup_free_ char *above = NULL, *name = NULL, *real = NULL;
	struct stat st;
	int r;

	if (fd >= 0 || fd == -ENOENT) {
		*ret = strdup(path);
		return *ret ? 0 : -ENOMEM;
	}
	r = find_real_path(rootfs, path, ret);
	if (r != -ENOENT)
		return r;
	r = split(path, &above, &name);
	if (r == 0)
		r = rootfs_real_path(rootfs, above, &real);
	if (r < 0)
		return r;
	if (str_format(ret, "%s%s%s", real, real[0] && real[strlen(real) - 1] == '/' ? "" : "/", name) < 0)
		return -ENOMEM;
	cleanup_closep(&fd);
	fd = rootfs_open_path(rootfs, *ret, O_PATH | O_NOFOLLOW);
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISLNK(st.st_mode))
		return 0;
	free(steal_ptr(*ret));
	return -ELOOP;
}

/* ---- creating ---- */

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

static int open_child(int parent, const char *name, int flags)
{
	int fd = openat(parent, name, flags | O_PATH | O_NOFOLLOW | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

/* What a symlink that led nowhere leads to, as a path from the root. Return: -ENOTDIR if it is no symlink, or no longer. */
static int follow(int parent, const char *above, const char *name, int *links, char **ret)
{
	_cleanup_free_ char *text = NULL;
	int r;

	r = fd_read_link_at(parent, name, &text);
	if (r < 0)
		return r == -EINVAL ? -ENOTDIR : r;
	if (++*links > LINKS_MAX)
		return -ELOOP;
	return str_format(ret, "%s%s%s", text[0] == '/' ? "" : above, text[0] == '/' ? "" : "/", text) < 0 ? -ENOMEM : 0;
}

static int make_directory(struct rootfs *rootfs, const char *path, mode_t mode, int *links);

/* @name, which does not exist as a directory, in @parent, which is taken over if something was made there. */
static int make_child_directory(struct rootfs *rootfs, int *parent, const char *above, const char *name, mode_t mode, int *links)
{
	_cleanup_free_ char *other = NULL;
	_cleanup_close_ int child = -1;
	int r;

	r = ground_check_make(rootfs, *parent);
	if (r == 0 && mkdirat(*parent, name, mode) < 0)
		r = -errno;
	if (r < 0 && r != -EEXIST && r != -EXDEV && r != -EROFS)
		return r;
	child = open_child(*parent, name, O_DIRECTORY);
	if (r == 0) {
		r = finish_created(rootfs, DEED_DIRECTORY, parent, name);
		return r < 0 ? r : steal_fd(&child);
	}
	if (child >= 0)
		return steal_fd(&child);
	/* A symlink may lead from where nothing can be made to where it can. */
	if (follow(*parent, above, name, links, &other) < 0)
		return r == -EEXIST ? -ENOTDIR : r;
	return make_directory(rootfs, other, mode, links);
}

static int make_directory(struct rootfs *rootfs, const char *path, mode_t mode, int *links)
{
	_cleanup_free_ char *above = NULL, *name = NULL;
	_cleanup_close_ int parent = -1, fd = -1;
	int r;

	fd = rootfs_open_path(rootfs, *path ? path : "/", O_PATH | O_DIRECTORY);
	if (fd != -ENOENT)
		return steal_fd(&fd);
	r = split(path, &above, &name);
	if (r < 0)
		return r;
	parent = make_directory(rootfs, above, mode, links);
	return parent < 0 ? parent : make_child_directory(rootfs, &parent, above, name, mode, links);
}

int rootfs_make_directory(struct rootfs *rootfs, const char *path, mode_t mode, int *ret_fd)
{
	int links = 0, fd = make_directory(rootfs, path, mode, &links);

	if (fd < 0)
		return fd;
	*ret_fd = fd;
	return 0;
}

/* The directory that holds @path, made where missing, and the name in it. @ret_above is the directory's path. */
static int open_parent(struct rootfs *rootfs, const char *path, int *links, int *ret_parent, char **ret_above, char **ret_name)
{
	_cleanup_free_ char *above = NULL, *name = NULL;
	int fd, r;

	r = split(path, &above, &name);
	if (r < 0)
		return r;
	fd = make_directory(rootfs, above, 0755, links);
	if (fd < 0)
		return fd;
	*ret_parent = fd;
	*ret_above = steal_ptr(above);
	*ret_name = steal_ptr(name);
	return 0;
}

/* The same where something is going to be made in it. */
static int make_parent(struct rootfs *rootfs, const char *path, int *ret_parent, char **ret_name)
{
	_cleanup_free_ char *above = NULL, *name = NULL;
	_cleanup_close_ int parent = -1;
	int links = 0, r;

	r = open_parent(rootfs, path, &links, &parent, &above, &name);
	if (r == 0)
		r = ground_check_make(rootfs, parent);
	if (r < 0)
		return r;
	*ret_parent = steal_fd(&parent);
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
		return steal_fd(&fd);
	if (fstat(fd, &st) < 0)
		return -errno;
	return S_ISDIR(st.st_mode) ? -EISDIR : steal_fd(&fd);
}

static int make_file(struct rootfs *rootfs, const char *path, mode_t mode, int *links)
{
	_cleanup_free_ char *above = NULL, *name = NULL, *other = NULL;
	_cleanup_close_ int parent = -1, made = -1;
	int fd, r;

	fd = open_file(rootfs, path);
	if (fd != -ENOENT)
		return fd;
	r = open_parent(rootfs, path, links, &parent, &above, &name);
	if (r < 0)
		return r;
	r = ground_check_make(rootfs, parent);
	made = r < 0 ? -1 : openat(parent, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
	if (made >= 0) {
		fd = open_child(parent, name, 0);
		r = finish_created(rootfs, DEED_FILE, &parent, name);
		if (r < 0)
			cleanup_closep(&fd);
		return r < 0 ? r : fd;
	}
	r = r < 0 ? r : -errno;
	if (r != -EEXIST && r != -EXDEV && r != -EROFS)
		return r;
	if (follow(parent, above, name, links, &other) == 0)
		return make_file(rootfs, other, mode, links);
	return r == -EEXIST ? open_file(rootfs, path) : r; /* somebody was faster */
}

int rootfs_make_file(struct rootfs *rootfs, const char *path, mode_t mode, int *ret_fd)
{
	int links = 0, fd = make_file(rootfs, path, mode, &links);

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

	r = make_parent(rootfs, path, &parent, &name);
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

int rootfs_open_regular(const struct rootfs *rootfs, const char *path, int handle)
{
	_cleanup_close_ int fd = -1;
	struct stat expected, st;

	if (fstat(handle, &expected) < 0)
		return -errno;
	if (!S_ISREG(expected.st_mode))
		return -EINVAL;
	fd = reopen(rootfs, path, handle);
	if (fd < 0)
		return steal_fd(&fd);
	if (fstat(fd, &st) < 0)
		return -errno;
	return st.st_dev == expected.st_dev && st.st_ino == expected.st_ino ? steal_fd(&fd) : -EAGAIN;
}

int rootfs_read_handle(const struct rootfs *rootfs, const char *path, int handle, size_t max, char **ret_data, size_t *ret_size)
{
	_cleanup_close_ int fd = rootfs_open_regular(rootfs, path, handle);

	return fd < 0 ? fd : fd_read_all(fd, max, ret_data, ret_size);
}

int rootfs_read_file(const struct rootfs *rootfs, const char *path, size_t max, char **ret_data, size_t *ret_size)
{
	_cleanup_close_ int handle = rootfs_open_path(rootfs, path, O_PATH);

	return handle < 0 ? handle : rootfs_read_handle(rootfs, path, handle, max, ret_data, ret_size);
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

	r = make_parent(rootfs, path, &deed.parent, &deed.name);
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
