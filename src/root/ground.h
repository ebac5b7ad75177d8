/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The ground that something in a container stands on: which mount it is on, and so what may be done there. A file of
 * the image is the container's own. A volume outlives the container, and may be a directory of the host; a symlink of
 * the image may lead there from anywhere. What is mounted on a mount that is shared appears on the host, and stays
 * there.
 */

#include <stdbool.h>
#include <stdint.h>

struct rootfs;
struct strv;

enum ground_kind {
	GROUND_ROOT,   /* the mount of the root filesystem: the image */
	GROUND_OWN,    /* a tmpfs of this container alone, as runtimes make it for /dev and engines for --tmpfs */
	GROUND_VOLUME, /* any other mount; what is there may be covered, for this container alone; nothing is made */
	GROUND_KERNEL, /* as a volume, of /proc, /sys or a cgroup: to be covered only where that is what is wanted */
	GROUND_SHARED, /* a volume on which nothing is mounted either: others would see it */
};

/* What is known of the mounts, for the questions of one apply. */
struct ground {
	uint64_t root;   /* the root's mount */
	int outside_fd;  /* mountinfo of the namespace that volumes come from, owned; -1: from the one we are in */
	char *outside;   /* what that says, read when it is asked for */
	char *inside;    /* mountinfo of the one we are in, likewise */
	char *root_path; /* in it */
	/*
	 * What the runtime was told to mount, borrowed; NULL: nobody knows. Sources that are there elsewhere as well,
	 * and where it makes a tmpfs, which is then a new one. With these, mountinfo, which has a line for each mount
	 * of the host, is not read for every container.
	 */
	const struct strv *binds, *tmpfs;
};

#define GROUND_UNKNOWN ((struct ground){.outside_fd = -1})

void ground_clear(struct ground *ground);

/**
 * ground_settle() - see to it that nothing which is mounted on the root's mount appears elsewhere
 * @rootfs: with its ground, deeds and proc_self_fd; its descriptor may become one of a mount that was laid over it
 * @keep:   whether the mount belongs to somebody who wants it as it is, and not to a runtime that makes a container
 *
 * A mount of the root's own stops to propagate. What is not one, or must stay, gets a private mount of itself over it,
 * with what is mounted below; that is a deed.
 *
 * Return: 0; negative errno.
 */
int ground_settle(struct rootfs *rootfs, bool keep);

/** The kernel's number of the mount that a descriptor is on. Return: 0; negative errno. */
int ground_find_mount(const struct rootfs *rootfs, int fd, uint64_t *ret);

/** Whether a descriptor is of the root's own mount. Any root filesystem will do, with a ground or without. */
bool ground_is_root(const struct rootfs *rootfs, int fd);

/** Whether it is of /proc, /sys or a cgroup, where a file may be gone when it was read. */
bool ground_is_kernel(int fd);

/**
 * ground_of() - what a descriptor stands on
 *
 * Without a ground, what is not on the root's mount is a volume. Return: 0; negative errno.
 */
int ground_of(const struct rootfs *rootfs, int fd, enum ground_kind *ret);

/** Whether something may be made in a directory on such ground. */
bool ground_may_make(enum ground_kind kind);

/** The same for directory @fd. Return: 0; -EXDEV; negative errno. */
int ground_check_make(const struct rootfs *rootfs, int fd);
