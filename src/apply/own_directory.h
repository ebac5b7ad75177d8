/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a container's root filesystem is spared. A file to be mounted on stays in the image that somebody makes of the
 * container, empty: loaders stop at it, and shells cannot run it. So a file of the plan is mounted in a directory of
 * ours, in memory, and where the plan wants it there is a symlink, which leads nowhere in such an image. A file that
 * the image itself has there is mounted on, as it is.
 */

#include <stdbool.h>

#include "base/err.h"
#include "model/plan.h"
#include "root/rootfs.h"

struct own_directory {
	bool tried;
	int tmpfs; /* the deeds'; -1: nothing is mounted there, or it is not known to be ours */
};

#define OWN_DIRECTORY_NONE ((struct own_directory){.tmpfs = -1})

/**
 * own_directory_open() - have PLAN_OWN_DIRECTORY lie in memory, if that is possible
 *
 * Where a volume is there, things are made, or missed, as everywhere. Return: 0; negative errno.
 */
int own_directory_open(struct own_directory *own, struct rootfs *rootfs, const struct mapped_root *owner);

/** Nothing can be changed there any more. Return: 0; negative errno. */
int own_directory_close(const struct own_directory *own, const struct rootfs *rootfs);

/** Whether a directory that the plan mounts brings the file along, by the name that it has on the host. */
bool own_directory_is_reachable(const struct plan *plan, const struct plan_mount *file);

/** Whether the symlink that own_directory_link() would make is there. */
bool own_directory_is_linked(const struct rootfs *rootfs, const struct plan *plan, const struct plan_mount *file);

/**
 * own_directory_link() - have a symlink where the plan wants a file and the image has none
 * @leads_to: where the file is; NULL: in PLAN_OWN_DIRECTORY, by its whole path
 * @ret:      new string, what the symlink says; NULL: there is none, and the file is to be mounted at @path
 *
 * Return: 0, also where no link can be made; -ENOMEM.
 */
int own_directory_link(struct rootfs *rootfs, const struct mapped_root *owner, const char *path, const char *leads_to,
		       char **ret);
