/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The part of a plan that is written into a container's root filesystem itself, rather than mounted on it: symlinks,
 * and the files that tell the image's loader of the driver's libraries.
 */

#include <stdbool.h>

#include "base/err.h"
#include "base/log.h"
#include "ldcache/loader.h"
#include "model/plan.h"
#include "root/rootfs.h"
#include "root/undo_log.h"

struct file_writer {
	struct rootfs *rootfs;
	const struct plan *plan;
	const struct mapped_root *owner;
	const struct log *log;
	struct err *err;
	bool leave_own; /* a tmpfs is going to be mounted on PLAN_OWN_DIRECTORY */
	/*
	 * For a file that cannot be written, as on a volume; writing it failed with @r.
	 * Return: 0, or a result with @err set.
	 */
	int (*cover)(void *user, const struct loader_file *file, int r);
	void *user;
};

/** Return: 0; the result of what failed, with @err set. What was done is in the deeds of the rootfs. */
int write_files_make_symlinks(const struct file_writer *writer);
int write_files_make_loader_files(const struct file_writer *writer);

/** What it means when making @path in the container fails with @r. Return: the result, with @err set. */
int write_files_error(struct err *err, const struct rootfs *rootfs, const char *path, int r);
