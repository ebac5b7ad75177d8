/* SPDX-License-Identifier: Apache-2.0 */

#include "root/rootfs.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/str.h"
#include "root/atomic_file.h"
#include "root/mount_class.h"

enum { LINKS_MAX = 40 }; /* as the kernel's MAXSYMLINKS */

void rootfs_close(struct rootfs *rootfs)
{
	rootfs_forget(rootfs);
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
static int rootfs_split(const char *path, char **ret_parent, char **ret_name)
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

int rootfs_open_path(const struct rootfs *rootfs, const char *path, int flags)
{
	return openat2_open_path(rootfs->fd, path, flags);
}

int rootfs_open_unlinked(const struct rootfs *rootfs, const char *path, int flags)
{
	int fd = openat2_open(rootfs->fd, path, flags, RESOLVE_NO_SYMLINKS);

	return fd == -ENOSYS || fd == -EPERM ? -ELOOP : fd;
}

/* The path of an open file, as /proc shows it in our namespace. */
static int rootfs_read_path(int fd, char **ret)
{
	char link[32];

	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	return fd_read_link_at(AT_FDCWD, link, ret);
}

/* Of what exists. */
static int rootfs_find_real_path(const struct rootfs *rootfs, const char *path, char **ret)
{
	_cleanup_free_ char *root = NULL, *real = NULL;
	_cleanup_close_ int fd = rootfs_open_path(rootfs, path, O_PATH);
	int r;

	if (fd < 0)
		return fd;
	r = rootfs_read_path(rootfs->fd, &root);
	if (r == 0)
		r = rootfs_read_path(fd, &real);
	if (r != 0)
		return r;
	if (!str_is_below(real, root))
		return -ESTALE;
	*ret = strdup(real + (streq(root, "/") ? 0 : strlen(root)));
	return *ret ? 0 : -ENOMEM;
}

int rootfs_real_path(const struct rootfs *rootfs, const char *path, char **ret)
{
	_cleanup_close_ int fd = openat2_open(rootfs->fd, path, O_PATH, RESOLVE_NO_SYMLINKS);
	_cleanup_free_ char *above = NULL, *name = NULL, *real = NULL;
	struct stat st;
	int r;

	if (fd >= 0 || fd == -ENOENT) {
		*ret = strdup(path);
		return *ret ? 0 : -ENOMEM;
	}
	r = rootfs_find_real_path(rootfs, path, ret);
	if (r != -ENOENT)
		return r;
	r = rootfs_split(path, &above, &name);
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

static bool rootfs_is_of_type(const struct undo_step *undo_step, mode_t type, struct stat *ret)
{
	return fstatat(undo_step->fds[0], undo_step->name, ret, AT_SYMLINK_NOFOLLOW) == 0 &&
	       (ret->st_mode & S_IFMT) == type;
}

void rootfs_undo_directory(const struct undo_log *undo_log, const struct undo_step *undo_step)
{
	(void)undo_log;
	(void)unlinkat(undo_step->fds[0], undo_step->name, AT_REMOVEDIR);
}

void rootfs_undo_file(const struct undo_log *undo_log, const struct undo_step *undo_step)
{
	struct stat st;

	(void)undo_log;
	if (rootfs_is_of_type(undo_step, S_IFREG, &st) && st.st_size == 0)
		(void)unlinkat(undo_step->fds[0], undo_step->name, 0);
}

void rootfs_undo_symlink(const struct undo_log *undo_log, const struct undo_step *undo_step)
{
	struct stat st;

	(void)undo_log;
	if (rootfs_is_of_type(undo_step, S_IFLNK, &st))
		(void)unlinkat(undo_step->fds[0], undo_step->name, 0);
}

/* @above and @name, one behind the other, make the path. */
static void rootfs_note(const struct rootfs *rootfs, char kind, const char *above, const char *name, const char *detail)
{
	_cleanup_free_ char *path = NULL;

	if (rootfs->noted && str_format(&path, "%s%s", above, name) >= 0)
		undo_log_note(rootfs->undo_log, kind, path, detail);
}

void rootfs_mark_content(const struct span *content, char ret[ROOTFS_MARK_SIZE])
{
	(void)snprintf(ret, ROOTFS_MARK_SIZE, "%016" PRIx64, str_hash_of(content->data, content->size));
}

/* A file in several parts gets no mark: it is too large to be read again, and itself records what ctr-gpu added. */
static void rootfs_note_content(const struct rootfs *rootfs, const char *path, const struct span *parts, size_t count)
{
	const struct span empty = {(const unsigned char *)"", 0};
	char mark[ROOTFS_MARK_SIZE] = "";
	size_t filled = 0;

	if (!rootfs->noted)
		return;
	for (size_t i = 1; i < count; i++)
		filled += parts[i].size > 0;
	if (filled == 0)
		rootfs_mark_content(count ? parts : &empty, mark);
	rootfs_note(rootfs, ROOTFS_NOTE_FILE, path, "", mark);
}

void rootfs_note_place(const struct rootfs *rootfs, const char *path, bool directory)
{
	if (directory)
		rootfs_note(rootfs, ROOTFS_NOTE_DIRECTORY, path, "", "");
	else
		rootfs_note_content(rootfs, path, NULL, 0);
}

/* Writes down that @name is about to be made in @parent. */
static int rootfs_log_undo(struct rootfs *rootfs, void (*undo)(const struct undo_log *, const struct undo_step *),
			   const struct rootfs_target *parent, const char *name)
{
	const struct undo_step undo_step = {
		.undo = undo,
		.fds = {parent->fd, -1, -1},
		.borrows = parent->borrowed,
		.as_owner = rootfs->owned,
	};

	return undo_log_add(rootfs->undo_log, &undo_step, name);
}

static int rootfs_open_child(int parent, const char *name, int flags)
{
	int fd = openat(parent, name, flags | O_PATH | O_NOFOLLOW | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

/* The target of a dangling symlink, as a path from the root. Return: -ENOTDIR if it has stopped being a symlink. */
static int rootfs_follow(int parent, const char *above, const char *name, int *links, char **ret)
{
	_cleanup_free_ char *text = NULL;
	int r;

	r = fd_read_link_at(parent, name, &text);
	if (r < 0)
		return r == -EINVAL ? -ENOTDIR : r;
	if (++*links > LINKS_MAX)
		return -ELOOP;
	return str_format(ret, "%s%s%s", text[0] == '/' ? "" : above, text[0] == '/' ? "" : "/", text) < 0 ? -ENOMEM
													   : 0;
}

static int rootfs_make_one_directory(struct rootfs *rootfs, const char *path, mode_t mode, int *links,
				     struct rootfs_target *ret);

/* Whether the cause may be a symlink there, or one that leads where something can be made. */
static bool rootfs_is_obstacle(int r)
{
	return r == -EEXIST || r == -EXDEV || r == -EROFS;
}

int rootfs_target_from_fd(const struct rootfs *rootfs, int fd, struct rootfs_target *ret)
{
	_cleanup_target_ struct rootfs_target place = {.fd = fd};
	int r = fd < 0 ? fd : mount_class_of(rootfs, fd, &place.mount_class);

	if (r < 0)
		return r;
	*ret = place;
	place.fd = -1;
	return 0;
}

/* ---- directories that are known ---- */

void rootfs_forget(struct rootfs *rootfs)
{
	for (size_t i = 0; i < ROOTFS_KNOWN_MAX; i++)
		free(steal_ptr(rootfs->known[i].path));
}

/* Takes @path, and has @place be the undo log's. One that is borrowed was known. */
static void rootfs_know(struct rootfs *rootfs, char *path, struct rootfs_target *place)
{
	struct rootfs_known *known = rootfs->known;

	if (place->borrowed) {
		free(path);
		return;
	}
	free(known[ROOTFS_KNOWN_MAX - 1].path);
	memmove(known + 1, known, (ROOTFS_KNOWN_MAX - 1) * sizeof(*known));
	place->borrowed = true;
	known[0] = (struct rootfs_known){.path = path, .root = rootfs->fd, .place = *place};
}

int rootfs_know_own(struct rootfs *rootfs, const char *path, int fd)
{
	struct rootfs_target place = {.fd = fd, .mount_class = MOUNT_CLASS_OWN, .made = true};
	char *copy = strdup(path);

	if (!copy)
		return -ENOMEM;
	rootfs_know(rootfs, copy, &place);
	return 0;
}

/* What is left of @path behind a directory; NULL: it is not below it. */
static const char *rootfs_known_rest(const struct rootfs *rootfs, const struct rootfs_known *known, const char *path)
{
	return known->path && known->root == rootfs->fd ? str_after_prefix(path, known->path) : NULL;
}

/* The one that is nearest to @path. */
static const struct rootfs_known *rootfs_find_known(const struct rootfs *rootfs, const char *path,
						    const char **ret_rest)
{
	const struct rootfs_known *found = NULL;

	for (size_t i = 0; i < ROOTFS_KNOWN_MAX; i++) {
		const char *rest = rootfs_known_rest(rootfs, &rootfs->known[i], path);

		if (rest && (!found || rest > *ret_rest)) {
			found = &rootfs->known[i];
			*ret_rest = rest;
		}
	}
	return found;
}

/* Making it shows whether another process was faster. Names that begin with a dot are left to the kernel. */
static bool rootfs_is_below_made(const struct rootfs *rootfs, const char *path)
{
	const char *rest = NULL;
	const struct rootfs_known *known = rootfs_find_known(rootfs, path, &rest);

	return known && known->place.made && *rest && *rest != '.' && !strstr(rest, "/.");
}

/* Return: -EXDEV where it is not below a known directory, or the way there leaves that; negative errno. */
static int rootfs_open_known(const struct rootfs *rootfs, const char *path, int flags, struct rootfs_target *ret)
{
	const struct open_how how = {
		.flags = (uint64_t)(unsigned)(flags | O_CLOEXEC),
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_XDEV | RESOLVE_NO_MAGICLINKS,
	};
	const char *rest = NULL;
	const struct rootfs_known *known = rootfs_find_known(rootfs, path, &rest);
	int fd;

	if (!known)
		return -EXDEV;
	if (!*rest) {
		*ret = known->place;
		ret->made = false;
		return 0;
	}
	fd = (int)syscall(SYS_openat2, known->place.fd, rest, &how, sizeof(how));
	if (fd < 0)
		return errno == ENOENT ? -ENOENT : -EXDEV;
	/* A runtime's tmpfs is so at the directory that the configuration names, and not for what is below. */
	if (known->place.mount_class == MOUNT_CLASS_OWN && !known->place.made)
		return rootfs_target_from_fd(rootfs, fd, ret);
	*ret = (struct rootfs_target){.fd = fd, .mount_class = known->place.mount_class};
	return 0;
}

/* ---- places ---- */

/* A path without another mount on the way is on the root's, so the kernel need not be asked again. */
static int rootfs_open_target(const struct rootfs *rootfs, const char *path, int flags, struct rootfs_target *ret)
{
	int fd, r = rootfs_open_known(rootfs, path, flags, ret);

	if (r != -EXDEV)
		return r;
	/* Runtimes mount a /dev for each container. */
	fd = str_has_prefix(path, "/dev/")
		     ? -EXDEV
		     : openat2_open(rootfs->fd, path, flags, RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV);
	if (fd == -EXDEV || fd == -ENOSYS || fd == -EPERM)
		return rootfs_target_from_fd(rootfs, rootfs_open_path(rootfs, path, flags), ret);
	if (fd < 0)
		return fd;
	*ret = (struct rootfs_target){.fd = fd, .mount_class = MOUNT_CLASS_ROOT};
	return 0;
}

/* Opens the directory just made in @parent. If another process mounts on its name meanwhile, the kernel refuses. */
static int rootfs_open_made(const struct rootfs *rootfs, const struct rootfs_target *parent, const char *name,
			    struct rootfs_target *ret)
{
	const struct open_how how = {
		.flags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_XDEV | RESOLVE_NO_SYMLINKS,
	};
	int fd = (int)syscall(SYS_openat2, parent->fd, name, &how, sizeof(how));

	if (fd < 0)
		return errno == ENOSYS || errno == EPERM
			       ? rootfs_target_from_fd(rootfs, rootfs_open_child(parent->fd, name, O_DIRECTORY), ret)
			       : -errno;
	*ret = (struct rootfs_target){.fd = fd, .mount_class = parent->mount_class, .made = true};
	return 0;
}

/* The undo log owns the parent's descriptor from then on. */
static int rootfs_try_directory(struct rootfs *rootfs, const struct rootfs_target *parent, const char *name,
				mode_t mode)
{
	int r = mount_class_allows_create(parent->mount_class)
			? rootfs_log_undo(rootfs, rootfs_undo_directory, parent, name)
			: -EXDEV;

	if (r < 0 || mkdirat(parent->fd, name, mode) == 0)
		return r;
	r = -errno;
	undo_log_pop(rootfs->undo_log);
	return r;
}

/* The same for a file. The mount goes onto this file, even if another file gets its name meanwhile. */
static int rootfs_try_file(struct rootfs *rootfs, const struct rootfs_target *parent, const char *name, mode_t mode,
			   struct rootfs_target *ret)
{
	int fd, r = mount_class_allows_create(parent->mount_class)
			    ? rootfs_log_undo(rootfs, rootfs_undo_file, parent, name)
			    : -EXDEV;

	if (r < 0)
		return r;
	fd = openat(parent->fd, name, O_RDONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
	if (fd >= 0) {
		*ret = (struct rootfs_target){.fd = fd, .mount_class = parent->mount_class, .made = true};
		return 0;
	}
	r = -errno;
	undo_log_pop(rootfs->undo_log);
	return r;
}

/* @name, which does not exist as a directory, in @parent. Takes @above if something was made there. */
static int rootfs_make_child_directory(struct rootfs *rootfs, struct rootfs_target *parent, char **above,
				       const char *name, mode_t mode, int *links, struct rootfs_target *ret)
{
	_cleanup_free_ char *other = NULL;
	int r, r_open;

	r = rootfs_try_directory(rootfs, parent, name, mode);
	if (r == 0) {
		if (parent->mount_class == MOUNT_CLASS_ROOT)
			rootfs_note(rootfs, ROOTFS_NOTE_DIRECTORY, *above, name, "");
		rootfs_know(rootfs, steal_ptr(*above), parent);
		return rootfs_open_made(rootfs, parent, name, ret);
	}
	if (!rootfs_is_obstacle(r))
		return r;
	r_open = rootfs_target_from_fd(rootfs, rootfs_open_child(parent->fd, name, O_DIRECTORY), ret);
	if (r_open == 0 || err_needs_no_context(r_open))
		return r_open;
	/* Nothing can be made here, but a symlink may lead to where it can. */
	r_open = rootfs_follow(parent->fd, *above, name, links, &other);
	if (r_open < 0)
		return r_open == -ELOOP ? r_open : r == -EEXIST ? -ENOTDIR : r;
	return rootfs_make_one_directory(rootfs, other, mode, links, ret);
}

static int rootfs_make_one_directory(struct rootfs *rootfs, const char *path, mode_t mode, int *links,
				     struct rootfs_target *ret)
{
	_cleanup_target_ struct rootfs_target parent = ROOTFS_TARGET_NONE;
	_cleanup_free_ char *above = NULL, *name = NULL;
	int r;

	r = rootfs_is_below_made(rootfs, path)
		    ? -ENOENT
		    : rootfs_open_target(rootfs, *path ? path : "/", O_PATH | O_DIRECTORY, ret);
	if (r != -ENOENT)
		return r;
	r = rootfs_split(path, &above, &name);
	if (r == 0)
		r = rootfs_make_one_directory(rootfs, above, mode, links, &parent);
	return r < 0 ? r : rootfs_make_child_directory(rootfs, &parent, &above, name, mode, links, ret);
}

int rootfs_make_directory(struct rootfs *rootfs, const char *path, mode_t mode, struct rootfs_target *ret)
{
	int links = 0;

	return rootfs_make_one_directory(rootfs, path, mode, &links, ret);
}

/* The directory that holds @path, made where missing, and the name in it. @ret_above is the directory's path. */
static int rootfs_open_parent(struct rootfs *rootfs, const char *path, int *links, struct rootfs_target *ret_parent,
			      char **ret_above, char **ret_name)
{
	_cleanup_free_ char *above = NULL, *name = NULL;
	int r;

	r = rootfs_split(path, &above, &name);
	if (r == 0)
		r = rootfs_make_one_directory(rootfs, above, 0755, links, ret_parent);
	if (r < 0)
		return r;
	*ret_above = steal_ptr(above);
	*ret_name = steal_ptr(name);
	return 0;
}

/* The same where something is going to be made in it. */
static int rootfs_make_parent(struct rootfs *rootfs, const char *path, struct rootfs_target *ret_parent,
			      char **ret_above, char **ret_name)
{
	int links = 0, r = rootfs_open_parent(rootfs, path, &links, ret_parent, ret_above, ret_name);

	return r < 0 || mount_class_allows_create(ret_parent->mount_class) ? r : -EXDEV;
}

/* Something to mount onto, but never a directory for a file: the kernel would refuse that with a bare ENOTDIR. */
static int rootfs_open_file(const struct rootfs *rootfs, const char *path, struct rootfs_target *ret)
{
	_cleanup_target_ struct rootfs_target place = ROOTFS_TARGET_NONE;
	struct stat st;
	int r;

	r = rootfs_open_target(rootfs, path, O_PATH, &place);
	if (r < 0)
		return r;
	if (fstat(place.fd, &st) < 0)
		return -errno;
	if (S_ISDIR(st.st_mode))
		return -EISDIR;
	*ret = place;
	place = ROOTFS_TARGET_NONE;
	return 0;
}

static int rootfs_make_one_file(struct rootfs *rootfs, const char *path, mode_t mode, int *links,
				struct rootfs_target *ret)
{
	_cleanup_target_ struct rootfs_target parent = ROOTFS_TARGET_NONE;
	_cleanup_free_ char *above = NULL, *name = NULL, *other = NULL;
	int r, r_open;

	/* Few images have it, so it is made before it is looked for. */
	r = rootfs_open_parent(rootfs, path, links, &parent, &above, &name);
	if (r == 0)
		r = rootfs_try_file(rootfs, &parent, name, mode, ret);
	if (r == 0) {
		if (parent.mount_class == MOUNT_CLASS_ROOT)
			rootfs_note_content(rootfs, path, NULL, 0);
		rootfs_know(rootfs, steal_ptr(above), &parent);
	}
	/* -EINVAL: its name is "..", which may lead to a directory. */
	if (!rootfs_is_obstacle(r) && r != -EINVAL)
		return r;
	r_open = rootfs_open_file(rootfs, path, ret);
	if (r_open != -ENOENT)
		return r_open;
	if (parent.fd >= 0 && rootfs_follow(parent.fd, above, name, links, &other) == 0)
		return rootfs_make_one_file(rootfs, other, mode, links, ret);
	return r;
}

int rootfs_make_file(struct rootfs *rootfs, const char *path, mode_t mode, struct rootfs_target *ret)
{
	int links = 0;

	return rootfs_make_one_file(rootfs, path, mode, &links, ret);
}

static bool rootfs_is_link_to(int link, const char *points_to)
{
	_cleanup_free_ char *text = NULL;
	struct stat st;

	return fstat(link, &st) == 0 && S_ISLNK(st.st_mode) && fd_read_link_at(link, "", &text) == 0 &&
	       streq(text, points_to);
}

int rootfs_try_symlink(struct rootfs *rootfs, const char *path, const char *points_to)
{
	_cleanup_target_ struct rootfs_target parent = ROOTFS_TARGET_NONE;
	_cleanup_free_ char *above = NULL, *name = NULL;
	_cleanup_close_ int old = -1;
	int r;

	r = rootfs_make_parent(rootfs, path, &parent, &above, &name);
	if (r == 0)
		r = rootfs_log_undo(rootfs, rootfs_undo_symlink, &parent, name);
	if (r < 0)
		return r;
	if (symlinkat(points_to, parent.fd, name) == 0) {
		if (parent.mount_class == MOUNT_CLASS_ROOT)
			rootfs_note(rootfs, ROOTFS_NOTE_SYMLINK, path, "", points_to);
		rootfs_know(rootfs, steal_ptr(above), &parent);
		return 1;
	}
	r = -errno;
	undo_log_pop(rootfs->undo_log);
	if (r != -EEXIST)
		return r;
	old = rootfs_open_child(parent.fd, name, 0);
	return old >= 0 && rootfs_is_link_to(old, points_to);
}

int rootfs_make_symlink(struct rootfs *rootfs, const char *path, const char *points_to)
{
	int r = rootfs_try_symlink(rootfs, path, points_to);

	return r < 0 ? r : 0;
}

/* ---- reading and writing ---- */

/*
 * The image may hold device nodes, and opening one may start a watchdog; so the type is looked at first, and then the
 * file is opened by its descriptor, since the path may have changed.
 */
int rootfs_open_regular(const struct rootfs *rootfs, int handle)
{
	return fd_reopen(rootfs->proc_self_fd, handle, NULL);
}

void rootfs_leave_open(const struct rootfs *rootfs, int *fd)
{
	if (rootfs->undo_log && rootfs->undo_log->ends)
		*fd = -1;
}

int rootfs_read_handle(const struct rootfs *rootfs, int handle, size_t max, char **ret_data, size_t *ret_size)
{
	struct stat st;
	_cleanup_close_ int fd = fd_reopen(rootfs->proc_self_fd, handle, &st);
	int r = fd < 0 ? fd : fd_read_sized(fd, st.st_size, max, ret_data, ret_size);

	rootfs_leave_open(rootfs, &fd);
	return r;
}

int rootfs_read_file(const struct rootfs *rootfs, const char *path, size_t max, char **ret_data, size_t *ret_size)
{
	_cleanup_close_ int handle = rootfs_open_path(rootfs, path, O_PATH);
	int r = handle < 0 ? handle : rootfs_read_handle(rootfs, handle, max, ret_data, ret_size);

	rootfs_leave_open(rootfs, &handle);
	return r;
}

/* Opens @name: a file for reading, else a handle. Return: descriptor; -ENOENT; -EISDIR; negative errno. */
static int rootfs_open_old(const struct rootfs *rootfs, int parent, const char *name, struct stat *ret_stat)
{
	_cleanup_close_ int handle = rootfs_open_child(parent, name, 0);
	int fd;

	if (handle < 0)
		return steal_fd(&handle);
	fd = fd_reopen(rootfs->proc_self_fd, handle, ret_stat);
	if (fd >= 0)
		rootfs_leave_open(rootfs, &handle);
	if (fd != -EINVAL)
		return fd;
	/* It is not regular. */
	return S_ISDIR(ret_stat->st_mode) ? -EISDIR : steal_fd(&handle);
}

/* The replacement for a file. */
struct replacement {
	const char *points_to; /* a symlink; NULL: a file of the parts */
	const struct span *parts;
	size_t count;
	mode_t mode;
	bool keeps; /* owner and mode of the old one, which must be a file */
};

/* Before the file has its name. */
static int rootfs_fill(int fd, const struct replacement *new, int old)
{
	struct stat st;
	int r = fd_write_parts(fd, new->parts, new->count);

	if (r < 0)
		return r;
	if (!new->keeps)
		return 0;
	if (fstat(old, &st) < 0)
		return -errno;
	/* A user may replace root's file in a directory of the user's, but not give one away: it stays the user's. */
	if (fchown(fd, st.st_uid, st.st_gid) < 0 && (errno != EPERM || geteuid() == 0))
		return -errno;
	return fchmod(fd, st.st_mode & 07777) < 0 ? -errno : 0;
}

/* Writes a temporary file and renames it, or a link beside it, to @name. */
static int rootfs_write_and_rename(struct undo_log *undo_log, int parent, const char *name,
				   const struct replacement *new, int old)
{
	char temporary[ATOMIC_FILE_SIZE];
	_cleanup_close_ int fd = -1;
	int r;

	fd = atomic_file_open(undo_log ? undo_log->proc_self_fd : -1, parent, new->mode, temporary, undo_log);
	if (fd < 0)
		return fd;
	if (new->points_to) {
		r = atomic_file_link(parent, temporary, new->points_to, name);
	} else {
		r = rootfs_fill(fd, new, old);
		if (r == 0 && renameat(parent, temporary, parent, name) < 0)
			r = -errno;
	}
	if (r < 0 || new->points_to)
		(void)unlinkat(parent, temporary, 0);
	undo_log_pop(undo_log);
	if (r == 0 && undo_log && undo_log->ends)
		(void)steal_fd(&fd);
	return r;
}

/* Restores a file from a descriptor of the old one: contents, owner, mode. Return: 0 or negative errno. */
static int rootfs_restore(int proc_self_fd, int parent, const char *name, int old, const struct stat *st)
{
	char temporary[ATOMIC_FILE_SIZE];
	_cleanup_close_ int fd = -1;
	int r;

	fd = atomic_file_open(proc_self_fd, parent, 0600, temporary, NULL);
	if (fd < 0)
		return fd;
	r = fd_copy(old, fd, ROOTFS_REPLACED_MAX);
	/* Without the right to give files away it stays the caller's, with the right content. */
	if (fchown(fd, st->st_uid, st->st_gid) < 0 && errno != EPERM)
		r = -errno;
	if (r == 0 && (fchmod(fd, st->st_mode & 07777) < 0 || renameat(parent, temporary, parent, name) < 0))
		r = -errno;
	if (r < 0)
		(void)unlinkat(parent, temporary, 0);
	return r;
}

void rootfs_undo_replacement(const struct undo_log *undo_log, const struct undo_step *undo_step)
{
	const int parent = undo_step->fds[0], old = undo_step->fds[1];
	struct stat before = {0}, now;
	char link[4096];
	ssize_t length;
	int r;

	if (old >= 0 && fstat(old, &before) == 0 && fstatat(parent, undo_step->name, &now, AT_SYMLINK_NOFOLLOW) == 0 &&
	    now.st_dev == before.st_dev && now.st_ino == before.st_ino)
		return; /* it had not come to that */
	if (S_ISREG(before.st_mode) &&
	    rootfs_restore(undo_log->proc_self_fd, parent, undo_step->name, old, &before) == 0)
		return;
	(void)unlinkat(parent, undo_step->name, 0);
	/* Now there is the room that ours had. */
	r = S_ISREG(before.st_mode) ? rootfs_restore(undo_log->proc_self_fd, parent, undo_step->name, old, &before) : 0;
	if (r < 0 && undo_log->restore_errno)
		*undo_log->restore_errno = -r;
	length = S_ISLNK(before.st_mode) ? readlinkat(old, "", link, sizeof(link) - 1) : -1;
	if (length < 0)
		return;
	link[length] = '\0';
	if (symlinkat(link, parent, undo_step->name) < 0 && undo_log->restore_errno)
		*undo_log->restore_errno = errno;
}

/*
 * To bring it back, all of it would have to be copied, which costs the caller time and disk space. What is compressed
 * has fewer blocks than bytes.
 */
static bool rootfs_is_too_large(int old, const struct stat *st)
{
	return S_ISREG(st->st_mode) && st->st_size > ROOTFS_REPLACED_MAX && fd_is_beyond_copy(old, ROOTFS_REPLACED_MAX);
}

static int rootfs_replace(struct rootfs *rootfs, const char *path, const struct replacement *new)
{
	_cleanup_target_ struct rootfs_target parent = ROOTFS_TARGET_NONE;
	_cleanup_free_ char *above = NULL, *name = NULL;
	_cleanup_close_ int old = -1;
	struct undo_step undo_step;
	struct stat st = {0};
	int r;

	r = rootfs_make_parent(rootfs, path, &parent, &above, &name);
	if (r < 0)
		return r;
	old = rootfs_open_old(rootfs, parent.fd, name, &st);
	if (old < 0 && (old != -ENOENT || new->keeps))
		return old;
	if (new->keeps && !S_ISREG(st.st_mode))
		return -ELOOP;
	if (old >= 0 && rootfs_is_too_large(old, &st))
		return -EOVERFLOW;
	if (new->points_to && old >= 0 && rootfs_is_link_to(old, new->points_to))
		return 0;
	undo_step = (struct undo_step){
		.undo = rootfs_undo_replacement,
		.fds = {parent.fd, old < 0 ? -1 : old, -1},
		.borrows = parent.borrowed,
		.as_owner = rootfs->owned,
	};
	r = undo_log_add(rootfs->undo_log, &undo_step, name);
	if (r < 0)
		return r;
	r = rootfs_write_and_rename(rootfs->undo_log, parent.fd, name, new, old);
	if (r < 0) {
		undo_log_pop(rootfs->undo_log);
		return r;
	}
	if (parent.mount_class == MOUNT_CLASS_ROOT && new->points_to)
		rootfs_note(rootfs, ROOTFS_NOTE_SYMLINK, path, "", new->points_to);
	else if (parent.mount_class == MOUNT_CLASS_ROOT)
		rootfs_note_content(rootfs, path, new->parts, new->count);
	/* The way to a directory may have led over the old one. */
	if (S_ISLNK(st.st_mode))
		rootfs_forget(rootfs);
	rootfs_know(rootfs, steal_ptr(above), &parent);
	(void)steal_fd(&old);
	return 0;
}

int rootfs_replace_file(struct rootfs *rootfs, const char *path, const struct span *parts, size_t count, mode_t mode)
{
	const struct replacement new = {.parts = parts, .count = count, .mode = mode};

	return rootfs_replace(rootfs, path, &new);
}

int rootfs_rewrite_file(struct rootfs *rootfs, const char *path, const struct span *parts, size_t count)
{
	const struct replacement new = {.parts = parts, .count = count, .mode = 0600, .keeps = true};

	return rootfs_replace(rootfs, path, &new);
}

int rootfs_replace_symlink(struct rootfs *rootfs, const char *path, const char *points_to)
{
	const struct replacement new = {.points_to = points_to, .mode = 0600};

	return rootfs_replace(rootfs, path, &new);
}
