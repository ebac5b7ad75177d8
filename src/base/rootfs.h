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
#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "base/deeds.h"
#include "base/span.h"

struct rootfs {
	int fd;           /* O_PATH|O_DIRECTORY, owned */
	int proc_self_fd; /* /proc/self/fd of the caller's own namespace, borrowed; -1: files are opened a second time by name */
	struct deeds *deeds; /* where what is made and replaced is written down, borrowed; NULL: nothing will be */
	bool owned;          /* made and replaced as deeds->owner */
};

void rootfs_close(struct rootfs *rootfs);
#define _cleanup_rootfs_ _cleanup_(rootfs_close)
/* What a rootfs is before it is opened, so that it may be closed. */
#define ROOTFS_CLOSED ((struct rootfs){.fd = -1, .proc_self_fd = -1})

/** Opens @path below @dirfd, a path of the caller and not of the container, as a root. Return: 0 or negative errno. */
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
 * Symlinks are followed inside the root; a dangling one is an error (-ENOENT), never followed by creation.
 *
 * Return: 0; -EROFS if something is missing and cannot be created; -ENOTDIR; negative errno.
 */
int rootfs_make_directory(struct rootfs *rootfs, const char *path, mode_t mode, int *ret_fd);

/**
 * rootfs_make_file() - a file to mount onto, with its parents, created where missing
 *
 * One that exists, of any type but a directory, is taken as it is. Return: as rootfs_make_directory(); -EISDIR.
 */
int rootfs_make_file(struct rootfs *rootfs, const char *path, mode_t mode, int *ret_fd);

/**
 * rootfs_make_symlink() - a symlink at @path, whose parents are created where missing
 *
 * An existing file of any kind there stays and is no error. Return: 0; -EROFS; -EXDEV if the directory is on a volume, which
 * outlives the container and may be a directory of the host; negative errno.
 */
int rootfs_make_symlink(struct rootfs *rootfs, const char *path, const char *points_to);

/**
 * rootfs_is_on_root_mount() - whether a file is on the mount of the root
 *
 * What is on another is a volume, which outlives the container and may be a directory of the host, or what the engine mounted.
 */
bool rootfs_is_on_root_mount(const struct rootfs *rootfs, int fd);

/**
 * rootfs_read_file() - the content of a regular file of the image
 * @max: most bytes accepted
 *
 * Return: 0; -ENOENT; -EFBIG; -EINVAL if it is no regular file; negative errno.
 */
int rootfs_read_file(const struct rootfs *rootfs, const char *path, size_t max, char **ret_data, size_t *ret_size);

/**
 * rootfs_replace_file() - write a file through a temporary one and a rename, in a directory created where missing
 * @parts: its content, one behind the other
 *
 * What stands at @path, a symlink too, is replaced. Return: 0; -EROFS; -EISDIR; -EBUSY if something is mounted there; -EXDEV if
 * the directory is on a volume; negative errno.
 */
int rootfs_replace_file(struct rootfs *rootfs, const char *path, const struct span *parts, size_t count, mode_t mode);
