/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* File descriptors: bounded reads, complete writes. Every descriptor is O_CLOEXEC from birth. */

#include <assert.h>
#include <dirent.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "base/span.h"

struct strv;

/**
 * fd_read_all() - read what is left of a file
 * @fd:       open file, borrowed
 * @max:      most bytes accepted
 * @ret_data: the bytes and a NUL behind them, owned by the caller
 * @ret_size: how many bytes, without that NUL; may be NULL
 *
 * Return: 0; -EFBIG if there are more than @max; negative errno.
 */
int fd_read_all(int fd, size_t max, char **ret_data, size_t *ret_size);

/**
 * fd_read_kernel_file() - what one read(2) gives of a file in a directory of procfs or of a cgroup
 * @max: if the file may have more than that, the rest is missing
 *
 * Nothing but the kernel's own files can be there. Return: as fd_read_all().
 */
int fd_read_kernel_file(int dirfd, const char *name, size_t max, char **ret);

/** fd_read_all() with the @size from fstat(2), which is right for all but procfs, sysfs and pipes: there it is 0. */
int fd_read_sized(int fd, off_t size, size_t max, char **ret_data, size_t *ret_size);

/**
 * fd_read_file_at() - fd_read_all() for a file at @path below @dirfd; unless it is regular, it is not opened
 *
 * The directory's owner can replace the file between fstatat() and openat(): see fd_read_untrusted_at().
 *
 * Return: as fd_read_all(); -EINVAL if it is not a regular file.
 */
int fd_read_file_at(int dirfd, const char *path, size_t max, char **ret_data, size_t *ret_size);

/**
 * fd_open_file_at() - opens a regular file for reading, and nothing else that comes into its place meanwhile
 * @flags: O_NOFOLLOW or 0
 *
 * Return: descriptor; -EINVAL if it is not a regular file; negative errno.
 */
int fd_open_file_at(int dirfd, const char *path, int flags);

/**
 * fd_open_log() - a file to append to, which is made if it is missing
 *
 * In a directory that every user may write, a link may be another user's, and not every kernel refuses to follow it
 * (fs.protected_symlinks and protected_fifos). So a link, a FIFO or a device counts only if root or the caller owns it.
 *
 * Return: descriptor; -EPERM; negative errno.
 */
int fd_open_log(const char *path);

/** fd_read_file_at() for a file whose name another user chose, or can exchange. */
int fd_read_untrusted_at(int dirfd, const char *path, size_t max, char **ret_data, size_t *ret_size);

/** Writes all of @data or fails. Return: 0 or negative errno. */
int fd_write_all(int fd, const void *data, size_t size);

/** Writes all of some parts, one behind the other, or fails. Return: 0 or negative errno. */
int fd_write_parts(int fd, const struct span *parts, size_t count);

/**
 * fd_copy() - makes an empty file a copy of another, holes too; safe in a signal handler
 * @max: most bytes, without holes; another process that may write the file can make it longer during the copy
 *
 * Return: 0; -EFBIG; negative errno.
 */
int fd_copy(int from, int to, off_t max);

/** Whether fd_copy() would refuse a file as it is now. */
bool fd_is_beyond_copy(int fd, off_t max);

/**
 * fd_reopen() - opens the regular file of a handle (O_PATH) for reading; its name may be a device's by now
 * @proc_self_fd: of /proc/self/fd; -1: by its path
 * @ret_stat:     of the file, also where this fails because it is not regular; may be NULL
 *
 * Return: descriptor; -EINVAL if it is not a regular file; negative errno.
 */
int fd_reopen(int proc_self_fd, int handle, struct stat *ret_stat);

/**
 * fd_read_link_at() - where a symlink points
 * @name: "" for the symlink that @dirfd itself is
 *
 * Return: 0 and a string, owned by the caller; negative errno.
 */
int fd_read_link_at(int dirfd, const char *name, char **ret);

/**
 * fd_connect() - connects to a stream socket of this machine, without waiting
 * @path: absolute
 *
 * Return: descriptor, which does not block; -EAGAIN if the listener's queue is full; negative errno.
 */
int fd_connect(const char *path);

DEFINE_CLEANUP(DIR *, closedir)
#define _cleanup_dir_ _cleanup_(closedirp)

/** opendir(3) for a directory below @dirfd. @flags: O_NOFOLLOW or 0. Return: NULL with errno set. */
DIR *fd_open_directory(int dirfd, const char *path, int flags);

/* A directory's entries. opendir(3) asks for the directory's type and takes memory besides. */
enum { FD_ENTRIES_SIZE = 32 * 1024 };
struct fd_entries {
	int fd; /* borrowed, at its beginning */
	size_t at, end;
	_Alignas(struct dirent) char buffer[FD_ENTRIES_SIZE];
};

void fd_entries_begin(struct fd_entries *entries, int fd);

/** Return: the next one, until the next call; NULL behind the last, with errno 0 there and an error otherwise. */
const struct dirent *fd_entries_next(struct fd_entries *entries);

/** Appends at most @max names of a directory, those that are wanted, sorted. Return: 0; negative errno. */
int fd_list_names(int dirfd, const char *path, bool (*wanted)(const char *name), size_t max, struct strv *ret);

/** dirfd(3); it does not fail for a stream of opendir(3) or fdopendir(3). */
static inline int directory_fd(DIR *directory)
{
	int fd = dirfd(directory);

	assert(fd >= 0);
	return fd;
}

/**
 * buffer_new() - memory for the bytes of a file
 *
 * A large buffer gets its pages at once rather than by a fault each, which is most of what a large file costs.
 *
 * Return: as malloc(3).
 */
void *buffer_new(size_t size);
