/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Mounts what the caller holds at a path of the container, where that may be done. */

#include <stdbool.h>
#include <stddef.h>

#include "apply/own_directory.h"
#include "base/err.h"
#include "base/log.h"
#include "base/span.h"
#include "root/mount.h"
#include "root/rootfs.h"
#include "root/undo_log.h"

/* All of it is borrowed. */
struct attach_context {
	struct rootfs *rootfs;
	struct mount_stage *stage;
	struct own_directory *own;
	const struct mapped_root *owner; /* who makes what is missing */
	const struct log *log;
	struct err *err;
};

/** own_directory_link(), and what the error means. Return: 0; -ENOMEM with the error set. */
int attach_target_link(const struct attach_context *attach_context, const char *path, const char *leads_to, char **ret);

/** A file or directory to mount onto, found, or made where it is missing. Return: 0; negative errno. */
int attach_target_make(const struct attach_context *attach_context, const char *path, bool directory,
		       struct rootfs_target *ret);

/**
 * attach_target_find_procfs() - a file or directory of procfs in the container
 *
 * A volume over /proc may contain anything: what is not procfs, or is missing, is left alone.
 *
 * Return: 0; -ENOENT; negative errno.
 */
int attach_target_find_procfs(const struct attach_context *attach_context, const char *path, struct rootfs_target *ret);

/** Whether nothing may be mounted there. @path: as the plan names it */
bool attach_target_is_forbidden(const struct rootfs_target *target, const char *path);

/** Return: CTR_GPU_E_BAD_ROOTFS or CTR_GPU_E_VOLUME, with the error set to what is to be done about it. */
int attach_target_refuse(const struct attach_context *attach_context, const struct rootfs_target *target,
			 const char *path);

/**
 * attach_target_can_do_without() - whether the engine's mounts leave no place for what the container works without;
 * says so
 * @r: of making @target
 */
bool attach_target_can_do_without(const struct attach_context *attach_context, const char *path, int r,
				  const struct rootfs_target *target);

/** Attaches a source at a place. Return: 0; a result with the error set. */
int attach_target_attach(const struct attach_context *attach_context, struct mount_source *source,
			 const struct rootfs_target *target, const char *path);

/** Lays bytes of ours over a place. Return: as attach_target_attach(). */
int attach_target_cover(const struct attach_context *attach_context, const struct span *parts, size_t count,
			const struct rootfs_target *target, const char *path);

/** What it means when mounting @source on @target fails with @r. Return: the result, with the error set. */
int attach_target_error(const struct attach_context *attach_context, const char *source, const char *target, int r);
