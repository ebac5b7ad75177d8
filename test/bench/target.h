/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A container as a hook meets it: namespaces and mounts are there, the process waits, the root is not yet switched. Its
 * root filesystem is an overlay with an empty upper directory, its cgroup allows no device. What runc does, without runc.
 */

#include <sys/types.h>

enum { TARGET_PATH_MAX = 1024 };

struct target {
	pid_t pid;                    /* 0: there is none */
	char bundle[TARGET_PATH_MAX]; /* has rootfs/ and config.json */
	char layers[TARGET_PATH_MAX]; /* what the root filesystem is made of */
	char cgroup[TARGET_PATH_MAX]; /* its directory in the devices hierarchy */
};

/**
 * target_start() - make a container and let it wait
 * @directory: an empty one for all targets; a tmpfs may be mounted on its "bundles": Docker and containerd have theirs in /run
 * @number:    tells targets apart
 * @image:     directory that is the overlay's lower layer
 * @config:    file to be config.json
 *
 * Ends the program when something fails.
 */
void target_start(const char *directory, unsigned number, const char *image, const char *config, struct target *ret);

/**
 * target_prepare() - only what an engine makes before it calls a runtime: the bundle, and its root filesystem in our namespace
 */
void target_prepare(const char *directory, unsigned number, const char *image, const char *config, struct target *ret);

/** Ends the process and removes what was made. */
void target_stop(struct target *target);
