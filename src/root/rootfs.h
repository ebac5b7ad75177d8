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
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "base/span.h"
#include "root/mount_class.h"
#include "root/undo_log.h"

/* ---- rootfs ---- */

/* A place found or made: its descriptor, the class of its mount, and whether it was just made. */
struct rootfs_target {
	int fd;
	enum mount_class mount_class;
	bool made;
	bool borrowed; /* the descriptor is the undo log's */
};

#define ROOTFS_TARGET_NONE ((struct rootfs_target){.fd = -1})
static inline void rootfs_target_close(struct rootfs_target *place)
{
	if (!place->borrowed)
		cleanup_closep(&place->fd);
}
#define _cleanup_target_ _cleanup_(rootfs_target_close)

/* A directory in which something was made: the next is often made there, or below it. */
struct rootfs_known {
	char *path;                 /* with "/" at its end; NULL: none */
	int root;                   /* it was reached from here */
	struct rootfs_target place; /* its descriptor is the undo log's; "made": nothing below it existed */
};

enum { ROOTFS_KNOWN_MAX = 8 };

struct rootfs {
	int fd;           /* O_PATH|O_DIRECTORY, owned */
	uint64_t mount;   /* the kernel's number of its mount; 0: not asked for yet */
	int proc_self_fd; /* /proc/self/fd of the caller's namespace, borrowed; -1: from this process's own /proc */
	struct mount_map *mount_map; /* what is known of its mounts, borrowed; NULL: all but the root's is a volume */
	struct undo_log *undo_log;   /* the list of changes, borrowed; NULL: they are not written down */
	struct rootfs_known known[ROOTFS_KNOWN_MAX]; /* the newest first */
	bool owned; /* made and replaced as the undo log's owner */
	bool noted; /* what is made is to be taken back at the container's end (undo_log_note()) */
};

void rootfs_close(struct rootfs *rootfs);
#define _cleanup_rootfs_ _cleanup_(rootfs_close)
/* A rootfs that is not open; closing it does nothing. */
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

/** The same without following any symlink. Return: also -ELOOP where there is one, or where the kernel cannot tell. */
int rootfs_open_unlinked(const struct rootfs *rootfs, const char *path, int flags);

/**
 * rootfs_real_path() - where a path leads, as far as that exists, with no symlink in it
 * @path: absolute, without "//", "." and ".."
 *
 * Components that do not exist are appended as given. Return: 0; -ELOOP also for a symlink that leads nowhere; negative
 * errno.
 */
int rootfs_real_path(const struct rootfs *rootfs, const char *path, char **ret);

/** Takes @fd, which may be a negative errno, and finds what it stands on. Return: 0; negative errno. */
int rootfs_target_from_fd(const struct rootfs *rootfs, int fd, struct rootfs_target *ret);

/*
 * Things are made on the container's own mounts only (mount_class.h); elsewhere the result is -EXDEV. The target of a
 * dangling symlink is made, inside the root, as container runtimes do.
 */

/**
 * rootfs_make_directory() - a directory, with its parents, created where missing
 * @mode: of the directories that are created
 * @ret:  its descriptor is owned by the caller; of O_PATH unless a file was made
 *
 * Return: 0; -EROFS if something is missing and cannot be created; -EXDEV if that is on a volume; -ENOTDIR; negative
 * errno.
 */
int rootfs_make_directory(struct rootfs *rootfs, const char *path, mode_t mode, struct rootfs_target *ret);

/**
 * rootfs_make_file() - a file to mount onto, with its parents, created where missing
 *
 * One that exists, of any type but a directory, is taken as it is. Return: as rootfs_make_directory(); -EISDIR.
 */
int rootfs_make_file(struct rootfs *rootfs, const char *path, mode_t mode, struct rootfs_target *ret);

/**
 * rootfs_forget() - to be called before the undo log ends, and when something is mounted on a directory: a path that
 * was looked up before may lead elsewhere then
 */
void rootfs_forget(struct rootfs *rootfs);

/**
 * rootfs_know_own() - the same of a tmpfs of the container that was mounted at @path
 * @path: with "/" at its end
 * @fd:   of its root directory, the undo log's
 */
int rootfs_know_own(struct rootfs *rootfs, const char *path, int fd);

/**
 * rootfs_make_symlink() - a symlink at @path, whose parents are created where missing
 *
 * An existing file of any kind stays and is not an error. Return: 0; -EROFS; -EXDEV; negative errno.
 */
int rootfs_make_symlink(struct rootfs *rootfs, const char *path, const char *points_to);

/**
 * rootfs_try_symlink() - the same, telling what is there
 *
 * Return: 1 if @path is a symlink that says this; 0 if it is another file; as rootfs_make_symlink().
 */
int rootfs_try_symlink(struct rootfs *rootfs, const char *path, const char *points_to);

/**
 * rootfs_replace_symlink() - the same, by a rename over what stands there, which is never followed
 *
 * A symlink that says the same already stays. Return: as rootfs_replace_file().
 */
int rootfs_replace_symlink(struct rootfs *rootfs, const char *path, const char *points_to);

/**
 * Opens the file of @handle (O_PATH) for reading, not by its path, after checking that it is a regular file.
 * Return: descriptor; -EINVAL; negative errno.
 */
int rootfs_open_regular(const struct rootfs *rootfs, int handle);

/** What the program's end closes, if its work is this: one call less. */
void rootfs_leave_open(const struct rootfs *rootfs, int *fd);

/** The content of a regular file that is held by an O_PATH descriptor. Return: as rootfs_read_file(). */
int rootfs_read_handle(const struct rootfs *rootfs, int handle, size_t max, char **ret_data, size_t *ret_size);

/**
 * rootfs_read_file() - the content of a regular file of the image
 * @max: most bytes accepted
 *
 * Return: 0; -ENOENT; -EFBIG; -EINVAL if it is not a regular file; negative errno.
 */
int rootfs_read_file(const struct rootfs *rootfs, const char *path, size_t max, char **ret_data, size_t *ret_size);

enum { ROOTFS_REPLACED_MAX = 16 << 20 }; /* of a file that is kept to be brought back, without holes */

/**
 * rootfs_replace_file() - write a file through a temporary one and a rename, in a directory created where missing
 * @parts: its content, one behind the other
 *
 * Whatever is at @path is replaced, also a symlink. Return: 0; -EROFS; -EISDIR; -EBUSY if something is mounted there;
 * -EXDEV; -EOVERFLOW if what is there is larger than ROOTFS_REPLACED_MAX; negative errno.
 */
int rootfs_replace_file(struct rootfs *rootfs, const char *path, const struct span *parts, size_t count, mode_t mode);

/** The same for a regular file, whose mode stays, and owner where the caller may. Return: also -ENOENT; -ELOOP. */
int rootfs_rewrite_file(struct rootfs *rootfs, const char *path, const struct span *parts, size_t count);

/* The kinds of what is noted. */
enum { ROOTFS_NOTE_DIRECTORY = 'd', ROOTFS_NOTE_SYMLINK = 'l', ROOTFS_NOTE_FILE = 'f' };

/** Notes a directory or an empty file that the runtime is going to make. */
void rootfs_note_place(const struct rootfs *rootfs, const char *path, bool directory);

enum { ROOTFS_MARK_SIZE = 24 };

/** The detail of a file's note, by which the same content is known again. */
void rootfs_mark_content(const struct span *content, char ret[ROOTFS_MARK_SIZE]);

/*
 * For steps, whose first descriptor is the parent of their name: remove what is empty, or a symlink; put the second
 * descriptor's file or symlink in place of what is there.
 */
void rootfs_undo_directory(const struct undo_log *undo_log, const struct undo_step *undo_step);
void rootfs_undo_file(const struct undo_log *undo_log, const struct undo_step *undo_step);
void rootfs_undo_symlink(const struct undo_log *undo_log, const struct undo_step *undo_step);
void rootfs_undo_replacement(const struct undo_log *undo_log, const struct undo_step *undo_step);

/* ---- openat2 ---- */

/*
 * openat2(2) with RESOLVE_IN_ROOT and, where a seccomp filter refuses the call, the same in user space: each component
 * is opened with O_NOFOLLOW from a held parent; a symlink's text is put in front of what is left of the path; ".." goes
 * back to a directory that is still held and so can never leave the root. Kernels before 5.6 have no openat2.
 */

/** The call itself, with @resolve besides. Return: descriptor; -ENOSYS, -EPERM where it is refused; negative errno. */
int openat2_open(int root, const char *path, int flags, uint64_t resolve);

/** Opens @path inside the directory @root, as open(2) with @flags. Return: descriptor; negative errno. */
int openat2_open_path(int root, const char *path, int flags);
