/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A container's files, reached through one descriptor of its root directory and nothing else.
 *
 * The image is hostile: any component of any path may be a symlink, and a process that shares a volume may swap it
 * while we work. So a path is resolved once, by the kernel, inside the root (openat2 with RESOLVE_IN_ROOT and
 * RESOLVE_NO_MAGICLINKS), and from then on only descriptors are used. Things are created by *at() calls on a held
 * parent, with O_EXCL and O_NOFOLLOW.
 */

#include <stdbool.h>
#include <sys/stat.h>

#include "base/str.h"

struct rootfs {
	int fd; /* O_PATH|O_DIRECTORY, owned */
	/* What was created, deepest last, as paths inside the root, so that rootfs_undo() can take it away again. */
	struct strv created;
};

void rootfs_close(struct rootfs *rootfs);
#define _cleanup_rootfs_ _cleanup_(rootfs_close)

/** Opens the directory that @fd refers to, or @path below it, as a root. Return: 0 or negative errno. */
int rootfs_open(int dirfd, const char *path, struct rootfs *ret);

/**
 * rootfs_open_path() - an existing file or directory, symlinks followed inside the root
 * @flags: of open(2), O_CLOEXEC is added; O_PATH to have only a handle
 *
 * Return: descriptor; negative errno.
 */
int rootfs_open_path(const struct rootfs *rootfs, const char *path, int flags);

/**
 * rootfs_make_directory() - a directory, with its parents, created where missing
 * @mode:   of what is created
 * @ret_fd: O_PATH descriptor, owned by the caller
 *
 * Symlinks are followed inside the root; a dangling one in the middle is an error (-ENOENT), never followed by creation.
 *
 * Return: 0; -EROFS if something is missing and cannot be created; -ENOTDIR; negative errno.
 */
int rootfs_make_directory(struct rootfs *rootfs, const char *path, mode_t mode, int *ret_fd);

/** The same for a regular file to mount onto; one that exists, of any type but a directory, is taken as it is. */
int rootfs_make_file(struct rootfs *rootfs, const char *path, mode_t mode, int *ret_fd);

/** A symlink at @path; an existing file of any kind there stays and is no error. */
int rootfs_make_symlink(struct rootfs *rootfs, const char *path, const char *points_to);

/**
 * rootfs_read_file() - the content of a regular file of the image
 * @max: most bytes accepted
 *
 * Return: 0; -ENOENT; -EFBIG; -EINVAL if it is no regular file; negative errno.
 */
int rootfs_read_file(const struct rootfs *rootfs, const char *path, size_t max, char **ret_data, size_t *ret_size);

/**
 * rootfs_replace_file() - write a file through a temporary one and a rename, in a directory created where missing
 *
 * What stands at @path, a symlink too, is replaced. Return: 0; -EROFS; negative errno.
 */
int rootfs_replace_file(struct rootfs *rootfs, const char *path, const void *data, size_t size, mode_t mode);

/** Removes what was created and is still empty, newest first. Never fails. */
void rootfs_undo(struct rootfs *rootfs);
