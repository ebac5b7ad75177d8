/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A container, being created or running: its first process, its root filesystem, its environment; and its bundle. */

#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/json.h"
#include "base/str.h"
#include "ctr-gpu.h"
#include "oci/oci.h"
#include "root/rootfs.h"
#include "system/machine.h"

/* Behind ctr_gpu_bundle: a container that does not exist yet, as its engine has written it down for its runtime. */

struct ctr_gpu_bundle {
	int directory;             /* root.path is relative to it; O_PATH */
	struct rootfs config_home; /* where config.json is; it is written by the rules for an image's files */
	char *config_name;         /* "/config.json" */
	char *config_path;         /* for messages */
	char *data;                /* of config.json, as it was */
	json_t *tree;
	struct oci_config config;
	char *hook;        /* path of ctr-gpu-hook; NULL: it is missing */
	bool makes_mounts; /* the runtime does, where nothing is in the way; else the hook does */
};


/* What there is to do about a root filesystem that cannot be opened. */
#define ROOTFS_ADVICE "A root filesystem is the absolute path of a directory, such as an unpacked image: see ls -ld."

struct ctr_gpu_container {
	pid_t pid;    /* 0: the caller's own mount namespace */
	int process;  /* /proc/<pid>; means this process even after its number is reused; -1 without a pid */
	char *rootfs; /* absolute path in the mount namespace of the process */
	bool running; /* the process is in its root filesystem already; what is done must be taken back by itself */
	bool inside;  /* the caller's own mount namespace is the container's: a hook that a runtime runs there */
	char *bundle; /* directory of its engine's for it, absolute; NULL without a state */
	char *id;     /* the engine's name for it; NULL without a state */
	char *record; /* directory for the record of changes; NULL: they are not recorded */
	bool leave_cgroup;
	bool leave_devices;
	bool checked;         /* container_check() was content */
	struct stat own_root; /* of the caller; with a process that was checked */
	/*
	 * The caller may not mount in its own user namespace, but may in the container's: an ordinary user started the
	 * runtime.
	 */
	bool enter_user_namespace;
	struct oci_config config; /* of one that was made from a state */
};

struct ctr_gpu_context;

/**
 * container_new_inside() - as ctr_gpu_container_new_from_state(), for a hook that runs in the container's own
 * namespaces
 *
 * Return: as ctr_gpu_container_new_from_state(), with the error of @context set.
 */
int container_new_inside(struct ctr_gpu_context *context, const char *state, size_t size,
			 struct ctr_gpu_container **ret);

/**
 * container_check() - whether a plan can be applied to it, as far as that shows beforehand
 *
 * A container that was made from a state has not been checked: a hook sees every container of an engine, and those that
 * want no GPU may be as they like.
 *
 * Return: as ctr_gpu_container_new(), with @err set.
 */
int container_check(struct ctr_gpu_container *container, struct err *err);

enum { CONTAINER_KEY_SIZE = PROCESS_KEY_SIZE };

/** process_key_make() of its process. Return: 0 or negative errno. */
int container_key(const struct ctr_gpu_container *container, char ret[CONTAINER_KEY_SIZE]);

/** Whether the process is still the one that was opened. Return: 0; -ESRCH with @err set. */
int container_check_running(const struct ctr_gpu_container *container, struct err *err);

/** Whether the process is in another user namespace than the caller. */
bool container_has_own_user_namespace(const struct ctr_gpu_container *container);

/**
 * container_open_rootfs() - its root directory, as its process sees it
 * @ret: released with rootfs_close()
 *
 * Return: 0; CTR_GPU_E_BAD_ROOTFS, also for the root directory of the machine; negative errno. @err is set.
 */
int container_open_rootfs(const struct ctr_gpu_container *container, struct rootfs *ret, struct err *err);

/**
 * container_open_bundle_root() - a bundle's root directory, on no way that others than root could lead elsewhere
 * @ret: released with rootfs_close()
 *
 * Return: 0; CTR_GPU_E_BAD_ROOTFS or CTR_GPU_E_KERNEL_TOO_OLD with @err set; negative errno if it cannot be opened.
 */
int container_open_bundle_root(const struct ctr_gpu_bundle *bundle, struct rootfs *ret, struct err *err);

/**
 * container_check_root() - refuses the machine's own root directory
 * @rootfs:   gets the number of its mount
 * @path:     what it is called in messages
 * @own_root: the machine's, if it is known; NULL: asked for
 *
 * Return: 0; a result with @err set.
 */
int container_check_root(struct rootfs *rootfs, const char *path, const struct stat *own_root, struct err *err);

/**
 * running_read_records() - what ctr_gpu_plan_apply() has given a container that runs, since it was started
 * @directory: of ctr_gpu_container_set_record()
 * @ret:       new array of {since, adapters, capabilities, …}, the first first; empty if nothing was
 *
 * Return: 0 or negative errno.
 */
int running_read_records(const struct ctr_gpu_container *container, const char *directory, json_t **ret);
