/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Classifies the mount that something in a container is on, which decides what may be done there. A file of
 * the image is the container's own. A volume outlives the container, and may be a directory of the host; a symlink of
 * the image may lead there from anywhere. What is mounted on a mount that is shared appears on the host, and stays
 * there.
 */

#include <stdbool.h>
#include <stdint.h>

struct rootfs;
struct strv;

enum mount_class {
	MOUNT_CLASS_ROOT,   /* the mount of the root filesystem: the image */
	MOUNT_CLASS_OWN,    /* a tmpfs of this container alone, as runtimes make it for /dev and engines for --tmpfs */
	MOUNT_CLASS_VOLUME, /* any other mount; what is there may be covered, for this container; nothing is made */
	MOUNT_CLASS_KERNEL, /* as a volume, of /proc, /sys or a cgroup: covered only where that is wanted */
	MOUNT_CLASS_SHARED, /* a volume on which nothing is mounted either: others would see it */
};

/* What is known of the mounts, for the questions of one apply. */
struct mount_map {
	uint64_t root;   /* the root's mount */
	uint64_t own;    /* the mount of the tmpfs that we have mounted ourselves; 0: none */
	int outside_fd;  /* mountinfo of the namespace that volumes come from, owned; -1: from the one we are in */
	char *outside;   /* what that says, read when it is asked for */
	char *inside;    /* mountinfo of the one we are in, likewise */
	char *root_path; /* in it */
	/*
	 * What the runtime has to mount, borrowed; NULL: unknown. The sources that exist elsewhere as well, and the
	 * places where it makes a new tmpfs. With these, mountinfo need not be read for every container: it has a line
	 * for each mount of the host.
	 */
	const struct strv *binds, *tmpfs;
};

#define MOUNT_MAP_NONE ((struct mount_map){.outside_fd = -1})

void mount_map_clear(struct mount_map *mount_map);

/**
 * mount_map_make_private() - see to it that nothing which is mounted on the root's mount appears elsewhere
 * @rootfs: with its mount map, undo log and proc_self_fd; its descriptor may become one of a mount laid over it
 * @keep:   whether the mount must stay as it is: its owner is not a runtime that makes a container
 *
 * A mount of the root's own stops to propagate. What is not one, or must stay, gets a private mount of itself over it,
 * with what is mounted below; that is in the undo log.
 *
 * Return: 0; negative errno.
 */
int mount_map_make_private(struct rootfs *rootfs, bool keep);

/** The kernel's number of the mount that a descriptor is on. Return: 0; negative errno. */
int mount_class_find_mount(const struct rootfs *rootfs, int fd, uint64_t *ret);

/** Whether a descriptor is of the root's own mount. Any root filesystem will do, with a mount map or without. */
bool mount_class_is_root(const struct rootfs *rootfs, int fd);

/** Whether it is of /proc, /sys or a cgroup, where a file may be gone when it was read. */
bool mount_class_is_kernel(int fd);

/**
 * mount_class_of() - what a descriptor stands on
 *
 * Without a mount map, what is not on the root's mount is a volume. Return: 0; negative errno.
 */
int mount_class_of(const struct rootfs *rootfs, int fd, enum mount_class *ret);

/** Whether something may be made in a directory on such a mount. */
bool mount_class_allows_create(enum mount_class kind);

/** The same for directory @fd. Return: 0; -EXDEV; negative errno. */
int mount_class_check_create(const struct rootfs *rootfs, int fd);
