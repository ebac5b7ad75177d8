/* SPDX-License-Identifier: Apache-2.0 */

#include "system/trusted_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"

enum {
	LINKS_MAX = 40, /* as the kernel */
	OTHERS_MAY_WRITE = S_IWGRP | S_IWOTH,
};

struct trusted_file_walk {
	int fd;            /* O_PATH, where it has come to */
	struct stat st;    /* of that */
	uid_t root, other; /* who is trusted */
	bool served;       /* it is a directory that root gave to another user */
	char *rest;        /* what is left of the path */
	int links;
};

static void trusted_file_walk_end(struct trusted_file_walk *walk)
{
	cleanup_closep(&walk->fd);
	free(walk->rest);
}

static bool trusted_file_is_theirs(const struct trusted_file_walk *walk, const struct stat *st)
{
	return st->st_uid == 0 || st->st_uid == walk->root || st->st_uid == walk->other;
}

static int trusted_file_walk_start(struct trusted_file_walk *walk)
{
	cleanup_closep(&walk->fd);
	walk->fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (walk->fd < 0 || fstat(walk->fd, &walk->st) < 0)
		return -errno;
	walk->root = walk->st.st_uid;
	return 0;
}

/* Takes the next component off the path. Return: NULL behind the last. */
static char *trusted_file_next_name(struct trusted_file_walk *walk)
{
	char *name = walk->rest + strspn(walk->rest, "/"), *end = name + strcspn(name, "/");
	char *copy = *name ? strndup(name, (size_t)(end - name)) : NULL;

	memmove(walk->rest, end, strlen(end) + 1);
	return copy;
}

static bool trusted_file_is_last(const struct trusted_file_walk *walk)
{
	return walk->rest[strspn(walk->rest, "/")] == '\0';
}

/* Whether a trusted user put this entry into the walk's directory. */
static bool trusted_file_is_placed(const struct trusted_file_walk *walk, const struct stat *entry)
{
	const struct stat *directory = &walk->st;

	/*
	 * A user with root's files in a directory of his own can link (where fs.protected_hardlinks is off) and rename
	 * them into /tmp; a directory cannot be moved so, since its ".." would change. In a user namespace all others
	 * look like root.
	 */
	if (directory->st_mode & OTHERS_MAY_WRITE)
		return trusted_file_is_theirs(walk, directory) && (directory->st_mode & S_ISVTX) &&
		       S_ISDIR(entry->st_mode) &&
		       (entry->st_uid == 0 || entry->st_uid == walk->other ||
			(walk->root == 0 && trusted_file_is_theirs(walk, entry)));
	if (trusted_file_is_theirs(walk, directory))
		return true;
	return walk->served && trusted_file_is_last(walk) && S_ISSOCK(entry->st_mode) &&
	       entry->st_uid == directory->st_uid;
}

static int trusted_file_follow(struct trusted_file_walk *walk, int link)
{
	_cleanup_free_ char *target = NULL, *rest = NULL;
	int r;

	if (++walk->links > LINKS_MAX)
		return -ELOOP;
	r = fd_read_link_at(link, "", &target);
	if (r == 0)
		r = str_format(&rest, "%s/%s", target, walk->rest);
	if (r < 0)
		return r;
	free(walk->rest);
	walk->rest = steal_ptr(rest);
	return target[0] == '/' ? trusted_file_walk_start(walk) : 0;
}

static int trusted_file_step(struct trusted_file_walk *walk, const char *name)
{
	_cleanup_close_ int fd = openat(walk->fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd < 0)
		return errno == ENOENT && (!trusted_file_is_theirs(walk, &walk->st) ||
					   (walk->st.st_mode & OTHERS_MAY_WRITE))
			       ? -EPERM
			       : -errno;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!trusted_file_is_placed(walk, &st))
		return -EPERM;
	if (S_ISLNK(st.st_mode))
		return trusted_file_follow(walk, fd);
	walk->served = !(walk->st.st_mode & OTHERS_MAY_WRITE);
	cleanup_closep(&walk->fd);
	walk->fd = steal_fd(&fd);
	walk->st = st;
	return 0;
}

static int trusted_file_check(const struct trusted_file_walk *walk, mode_t type)
{
	if ((walk->st.st_mode & S_IFMT) != type)
		return -EINVAL;
	if (type != S_IFSOCK && (walk->st.st_mode & OTHERS_MAY_WRITE))
		return -EPERM;
	/* trusted_file_is_placed() has checked the owner of a socket. */
	return trusted_file_is_theirs(walk, &walk->st) || type == S_IFSOCK ? 0 : -EPERM;
}

static int trusted_file_reopen(int handle, int flags)
{
	char path[32];
	int fd;

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", handle);
	fd = open(path, flags | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* @walk: its descriptor is -1; it has the uids that are trusted. */
static int trusted_file_walk_path(struct trusted_file_walk *walk, const char *path)
{
	int r = path[0] == '/' ? trusted_file_walk_start(walk) : -EINVAL;

	walk->rest = strdup(path);
	if (!walk->rest)
		return -ENOMEM;
	while (r == 0 && !trusted_file_is_last(walk)) {
		_cleanup_free_ char *name = trusted_file_next_name(walk);

		r = name ? trusted_file_step(walk, name) : -ENOMEM;
	}
	return r;
}

int trusted_file_look(const char *path, uid_t other)
{
	_cleanup_(trusted_file_walk_end) struct trusted_file_walk walk = {.fd = -1, .other = other};

	return trusted_file_walk_path(&walk, path);
}

int trusted_file_open(const char *path, mode_t type, uid_t other, int flags)
{
	_cleanup_(trusted_file_walk_end) struct trusted_file_walk walk = {.fd = -1, .other = other};
	int r = trusted_file_walk_path(&walk, path);

	if (r == 0)
		r = trusted_file_check(&walk, type);
	if (r < 0)
		return r;
	return flags & O_PATH ? steal_fd(&walk.fd) : trusted_file_reopen(walk.fd, flags);
}

char *file_text(const char *path)
{
	char *text;

	return fd_read_file_at(AT_FDCWD, path, FILE_TEXT_MAX, &text, NULL) == 0 ? text : NULL;
}

long file_number(const char *path, long otherwise)
{
	_cleanup_free_ char *text = file_text(path);
	char *end;
	long number;

	if (!text)
		return otherwise;
	errno = 0;
	number = strtol(text, &end, 10);
	return end == text || errno ? otherwise : number;
}

bool file_exists(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0;
}

bool file_is_device(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISCHR(st.st_mode);
}

bool file_may_open(const char *path)
{
	return faccessat(AT_FDCWD, path, R_OK | W_OK, AT_EACCESS) == 0;
}
