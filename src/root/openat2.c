/* SPDX-License-Identifier: Apache-2.0 */

#include "root/rootfs.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"

enum {
	/* openat2(2) gives up with EAGAIN when a rename on the machine might have moved a ".." out of the root. */
	RACES_MAX = 128,
	DEPTH_MAX = 128, /* directories held at once */
	LINKS_MAX = 40,  /* as the kernel's MAXSYMLINKS */
};

struct openat2_fallback {
	int held[DEPTH_MAX]; /* from the root, which is borrowed, to where we are */
	size_t depth;        /* of the last one */
	int links;
	char *rest; /* of the path, owned */
};

static void openat2_fallback_up(struct openat2_fallback *walk)
{
	if (walk->depth > 0)
		(void)close(walk->held[walk->depth--]);
}

static void openat2_fallback_to_root(struct openat2_fallback *walk)
{
	while (walk->depth > 0)
		openat2_fallback_up(walk);
}

static void openat2_fallback_end(struct openat2_fallback *walk)
{
	openat2_fallback_to_root(walk);
	free(walk->rest);
}

/* Takes the next component off the rest; "" when there is none. */
static int openat2_fallback_next_component(struct openat2_fallback *walk, char name[NAME_MAX + 1])
{
	const char *start = walk->rest + strspn(walk->rest, "/");
	size_t length = strcspn(start, "/");

	if (length > NAME_MAX)
		return -ENAMETOOLONG;
	memcpy(name, start, length);
	name[length] = '\0';
	memmove(walk->rest, start + length, strlen(start + length) + 1);
	return 0;
}

/* The text of a magic link of procfs is followed inside the root like any other, and leads nowhere harmful. */
static int openat2_fallback_expand_symlink(struct openat2_fallback *walk, int link)
{
	_cleanup_free_ char *text = NULL;
	char *rest = NULL;
	int r;

	if (++walk->links > LINKS_MAX)
		return -ELOOP;
	r = fd_read_link_at(link, "", &text);
	if (r < 0)
		return r;
	if (!*text)
		return -ENOENT;
	if (strlen(walk->rest) + strlen(text) >= PATH_MAX)
		return -ENAMETOOLONG;
	if (str_format(&rest, "%s%s", text, walk->rest) < 0)
		return -ENOMEM;
	if (text[0] == '/')
		openat2_fallback_to_root(walk);
	free(walk->rest);
	walk->rest = rest;
	return 0;
}

static int openat2_fallback_down(struct openat2_fallback *walk, int *directory)
{
	if (walk->depth + 1 >= DEPTH_MAX)
		return -ENAMETOOLONG;
	walk->held[++walk->depth] = steal_fd(directory);
	return 0;
}

/* The end of the path: a handle is there already; for more, the name is opened again and must be the same file. */
static int openat2_fallback_open_last(const struct openat2_fallback *walk, const char *name, int *handle,
				      const struct stat *expected, int flags)
{
	_cleanup_close_ int fd = -1;
	struct stat st;

	if ((flags & O_DIRECTORY) && !S_ISDIR(expected->st_mode))
		return -ENOTDIR;
	if (flags & O_PATH)
		return steal_fd(handle);
	fd = openat(walk->held[walk->depth], name, flags | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return errno == ELOOP ? -EAGAIN : -errno;
	if (fstat(fd, &st) < 0)
		return -errno;
	return st.st_dev == expected->st_dev && st.st_ino == expected->st_ino ? steal_fd(&fd) : -EAGAIN;
}

/* Where a path ends in "/", "." or "..": the directory we are in. */
static int openat2_fallback_open_here(const struct openat2_fallback *walk, int flags)
{
	int fd = openat(walk->held[walk->depth], ".", flags | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

/* A component that is a name. Return: as openat2_fallback_step(). */
static int openat2_fallback_step_to(struct openat2_fallback *walk, const char *name, bool last, int flags, int *ret_fd)
{
	_cleanup_close_ int handle = -1;
	struct stat st;
	int r;

	handle = openat(walk->held[walk->depth], name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (handle < 0 || fstat(handle, &st) < 0)
		return -errno;
	if (S_ISLNK(st.st_mode) && !(last && (flags & O_NOFOLLOW))) {
		r = openat2_fallback_expand_symlink(walk, handle);
		return r < 0 ? r : 1;
	}
	if (last) {
		*ret_fd = openat2_fallback_open_last(walk, name, &handle, &st, flags);
		return *ret_fd < 0 ? *ret_fd : 0;
	}
	if (!S_ISDIR(st.st_mode))
		return -ENOTDIR;
	r = openat2_fallback_down(walk, &handle);
	return r < 0 ? r : 1;
}

/* One component. Return: 1 to go on; 0 with @ret_fd at the end of the path; negative errno. */
static int openat2_fallback_step(struct openat2_fallback *walk, int flags, int *ret_fd)
{
	char name[NAME_MAX + 1];
	bool last;
	int r;

	r = openat2_fallback_next_component(walk, name);
	if (r < 0)
		return r;
	last = walk->rest[0] == '\0';
	if (*name && !streq(name, ".") && !streq(name, ".."))
		return openat2_fallback_step_to(walk, name, last, flags, ret_fd);
	if (streq(name, ".."))
		openat2_fallback_up(walk);
	if (!last)
		return 1;
	*ret_fd = openat2_fallback_open_here(walk, flags);
	return *ret_fd < 0 ? *ret_fd : 0;
}

static int openat2_fallback_open(int root, const char *path, int flags)
{
	struct openat2_fallback walk = {.held = {root}};
	int fd = -1, r = 1;

	if (!*path)
		return -ENOENT;
	if (strlen(path) >= PATH_MAX)
		return -ENAMETOOLONG;
	walk.rest = strdup(path);
	if (!walk.rest)
		return -ENOMEM;
	while (r == 1)
		r = openat2_fallback_step(&walk, flags, &fd);
	openat2_fallback_end(&walk);
	return r < 0 ? r : fd;
}

/* ---- the call ---- */

int openat2_open(int root, const char *path, int flags, uint64_t resolve)
{
	struct open_how how = {.flags = (uint64_t)(unsigned)(flags | O_CLOEXEC), .resolve = RESOLVE_IN_ROOT | resolve};

	for (int race = 0; race < RACES_MAX; race++) {
		int fd = (int)syscall(SYS_openat2, root, path, &how, sizeof(how));

		if (fd >= 0)
			return fd;
		if (errno != EAGAIN && errno != EINTR)
			return -errno;
	}
	return -EAGAIN;
}

int openat2_open_path(int root, const char *path, int flags)
{
	int fd = openat2_open(root, path, flags, RESOLVE_NO_MAGICLINKS);

	/* EPERM: a seccomp filter. ENOSYS: a kernel before 5.6, whose own files alone are looked at (doctor). */
	return fd == -ENOSYS || fd == -EPERM ? openat2_fallback_open(root, path, flags) : fd;
}
