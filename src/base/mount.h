/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Mounts from descriptor to descriptor: a detached copy is taken on the host's side, given its flags while nobody can
 * reach it, carried into the container's mount namespace, and attached to a target that is held open. Kernels without
 * open_tree(2), move_mount(2) (5.2) or mount_setattr(2) (5.12) get bind mounts between /proc/self/fd entries, which are
 * reached through a descriptor of that directory and so cannot be faked by a container.
 */

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/rootfs.h"

enum mount_kind {
	MOUNT_READ_ONLY, /* files and directories of the host: read-only, nosuid, nodev */
	MOUNT_DEVICE,    /* a device node: nosuid, noexec */
	MOUNT_DATA,      /* bytes of ours: read-only, nosuid, nodev, noexec */
};

/* A detached mount. Once it is attached, it is among the deeds of the root filesystem. */
struct mount_source {
	int tree;         /* of open_tree(2), detached; -1: attached, or there is only a source for a bind mount */
	const char *path; /* in the namespace it came from, borrowed */
	struct stat st;   /* of what is mounted */
	enum mount_kind kind;
	bool noexec;
};

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

/** A descriptor of /proc/self/fd, to be opened before the mount namespace is changed. Return: descriptor or negative errno. */
int mount_open_proc_self_fd(void);

/**
 * mount_is_there() - whether mounting the source on @target is not needed
 *
 * It is the same file, with flags at least as strict; or a usable node of the same device. That one may be the engine's, with
 * an owner who lets the container's user open it, as CDI has it.
 */
bool mount_is_there(const struct mount_source *source, int target);

/**
 * mount_attach() - attach to a target in the current mount namespace
 * @rootfs: with its proc_self_fd and deeds
 * @path:   of the target in it; a bind mount's flags are set on what is found there
 * @target: O_PATH descriptor of the target
 *
 * Return: 0; -ESTALE if the source or the target changed meanwhile; negative errno. What was begun is undone.
 */
int mount_attach(struct mount_source *source, const struct rootfs *rootfs, const char *path, int target);

/**
 * mount_attach_data() - lay a read-only file with these bytes over an existing one
 * @parts: the bytes, one behind the other
 *
 * The bytes lie in a tmpfs of their own that nothing else can reach. Return: as mount_attach().
 */
int mount_attach_data(const struct rootfs *rootfs, const char *path, int target, const struct span *parts, size_t count);

/**
 * mount_attach_empty() - cover a directory with an empty one
 *
 * Return: as mount_attach().
 */
int mount_attach_empty(const struct rootfs *rootfs, const char *path, int target);
