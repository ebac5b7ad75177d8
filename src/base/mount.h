/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Mounts from descriptor to descriptor: a detached copy is taken on the host's side, given its flags while nobody can
 * reach it, carried into the container's mount namespace, and attached to a target that is held open. Kernels without
 * open_tree(2), move_mount(2) (5.2) or mount_setattr(2) (5.12) get bind mounts between /proc/self/fd entries, which are
 * reached through a descriptor of that directory and so cannot be faked by a container.
 */

#include <stdbool.h>
#include <sys/types.h>

enum mount_kind {
	MOUNT_READ_ONLY, /* files and directories of the host: read-only, nosuid, nodev */
	MOUNT_DEVICE,    /* a device node: nosuid, noexec */
};

/* A detached mount, later an attached one. */
struct mount_source {
	int tree;   /* of open_tree(2); -1 when the fallback is used */
	int origin; /* O_PATH descriptor of what is mounted */
	enum mount_kind kind;
	bool noexec;
	bool attached;
};

void mount_source_close(struct mount_source *source);

/**
 * mount_source_open() - take a detached, private copy of a file or directory of this mount namespace
 * @path: absolute, symlinks followed
 * @ret:  released with mount_source_close(), which does not unmount
 *
 * Return: 0 or negative errno.
 */
int mount_source_open(const char *path, enum mount_kind kind, bool noexec, struct mount_source *ret);

/** A descriptor of /proc/self/fd, to be opened before the mount namespace is changed. Return: descriptor or negative errno. */
int mount_open_proc_self_fd(void);

/**
 * mount_attach() - attach to a target in the current mount namespace
 * @target:       O_PATH descriptor of the target
 * @proc_self_fd: from mount_open_proc_self_fd()
 */
int mount_attach(struct mount_source *source, int target, int proc_self_fd);

/** Takes an attached mount away again. Return: 0 or negative errno. */
int mount_detach(struct mount_source *source, int proc_self_fd);
