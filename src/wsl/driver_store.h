/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A directory of the driver's files that has been read. */

#include <stdbool.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/str.h"

#define DRIVER_STORE_SMI "nvidia-smi"

struct driver_store {
	int fd; /* -1: what was read at another time */
	struct stat st;
	struct strv libraries; /* "libcuda.so.1", sorted */
	bool has_smi;          /* it has a file "nvidia-smi", as far as the directory says */
	bool has_outside_link; /* it has a symlink to what a container does not get with the directory */
};

void driver_store_clear(struct driver_store *listing);
#define _cleanup_listing_ _cleanup_(driver_store_clear)

/** Reads the directory at @path. Return: 0; negative errno; @ret, cleared before, is released in any case. */
int driver_store_read(const char *path, struct driver_store *ret);
