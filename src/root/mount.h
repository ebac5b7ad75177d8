/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Mounts from descriptor to descriptor: a detached copy is taken on the host's side, given its flags while no process
 * can reach it, carried into the container's mount namespace, and attached to a target that is held open. Kernels
 * without open_tree(2), move_mount(2) (5.2) or mount_setattr(2) (5.12) get a bind mount that is made in a tmpfs of
 * ours, given its flags there, and moved to the target, between /proc/self/fd entries, which are reached through a
 * descriptor of that directory and so cannot be faked by a container.
 */

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/span.h"
#include "root/undo_log.h"

enum mount_kind {
	MOUNT_READ_ONLY, /* files and directories of the host: read-only, nosuid, nodev */
	MOUNT_DEVICE,    /* a device node: nosuid, noexec */
	MOUNT_DATA,      /* bytes of ours: read-only, nosuid, nodev, noexec */
};

/* A detached mount. Once it is attached, it is in the undo log of the root filesystem. */
struct mount_source {
	int tree;         /* of open_tree(2), detached; -1: attached, or there is only a source for a bind mount */
	const char *path; /* in the namespace it came from, borrowed */
	struct stat st;   /* of what is mounted */
	enum mount_kind kind;
	bool noexec;
	bool staged; /* the tree is a mount of this namespace, made in the stage */
};

#define MOUNT_NONE ((struct mount_source){.tree = -1})

/** Releases descriptors; what is attached stays. */
void mount_source_close(struct mount_source *source);

/**
 * mount_source_open() - take a detached, private copy of a file or directory of this mount namespace
 * @path: absolute, symlinks followed; must stay as it is until the source is closed
 * @ret:  released with mount_source_close()
 *
 * Return: 0; negative errno.
 */
int mount_source_open(const char *path, enum mount_kind kind, bool noexec, struct mount_source *ret);

/**
 * mount_open_proc_self_fd() - opens /proc/self/fd; to be done before the mount namespace is changed
 * @process: a directory of a process that is known to be on a procfs, in which the way there is looked for; -1: none
 *
 * Return: descriptor; -ENOTDIR if it is not a procfs; negative errno.
 */
int mount_open_proc_self_fd(int process);

/**
 * mount_is_present() - whether mounting the source on @target is not needed
 *
 * It is not needed where the target is the same file, mounted with flags at least as strict, or a usable node of the
 * same device. An engine that applies a CDI spec makes such a node, with an owner that the container's user can use.
 *
 * @any_flags: whether the same file will do with any flags
 */
bool mount_is_present(const struct mount_source *source, int target, bool any_flags);

/**
 * A tmpfs of ours over the root directory of the container. What has to be prepared in the container's mount namespace
 * is prepared there, where no other process can reach it. It stays for one mount only: a ".." that leads to the root
 * directory leads into it.
 */
struct mount_stage {
	struct undo_log *undo_log; /* borrowed; with its proc_self_fd. It has what is mounted */
	int root;                  /* the directory, borrowed */
	int tmpfs;                 /* owned by the undo log; -1 until it is needed */
	unsigned count;            /* of what was put into it */
};

/** Takes the tmpfs away; what was attached from it stays. */
void mount_stage_close(struct mount_stage *stage);

/**
 * mount_attach() - attach to a target in the current mount namespace
 * @target: O_PATH descriptor of the target
 *
 * What is attached is in the undo log; the stage is closed in any case. Return: 0; -ESTALE if the source has changed;
 * negative errno.
 */
int mount_attach(struct mount_source *source, struct mount_stage *stage, int target);

/**
 * mount_make_data() - a read-only file with these bytes, for mount_attach()
 * @parts: the bytes, one behind the other
 *
 * The bytes lie in a tmpfs that nothing else can reach. Return: 0; negative errno.
 */
int mount_make_data(struct mount_stage *stage, const struct span *parts, size_t count, struct mount_source *ret);

/** An empty directory, for mount_attach(). Return: 0; negative errno. */
int mount_make_empty(struct mount_stage *stage, struct mount_source *ret);

/**
 * mount_own_tmpfs() - an empty directory of ours over one of the container, that every user may read; in the undo log
 * @owner: of the directory
 *
 * Return: its descriptor, the undo log's; negative errno.
 */
int mount_own_tmpfs(struct undo_log *undo_log, int directory, const struct mapped_root *owner);

/** Whether something can be changed through the mount of that tmpfs. Return: 0; negative errno. */
int mount_set_read_only(int proc_self_fd, int fd, bool read_only);

/** For the undo log: takes the mount away whose root its first descriptor is. */
void mount_undo(const struct undo_log *undo_log, const struct undo_step *undo_step);

/** Sets MS_PRIVATE or MS_SLAVE, also with MS_REC, for the mount whose root @fd is. Return: 0 or negative errno. */
int mount_set_propagation(int proc_self_fd, int fd, unsigned long type);

/** Mounts a directory over itself, privately; in the undo log. Return: its descriptor, the caller's; negative errno. */
int mount_bind_over_itself(struct undo_log *undo_log, int directory);

/** Mounts what is at @from, with all mounts below, privately at @to as well. Return: 0 or negative errno. */
int mount_bind_recursive(int proc_self_fd, int from, int to);
