/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A driver's library, loaded into this process, and those of its functions that are asked for. */

#include <stdbool.h>

#include "driverd/protocol.h"

struct library_symbol {
	const char *name; /* NULL ends a table */
	void *function;   /* a pointer to a function, which is set; to NULL where an optional one is missing */
	bool optional;
};

/**
 * library_load() - load the library at @path, and find its functions
 *
 * It stays loaded, so that the answer does not wait for its destructors.
 *
 * Return: whether that worked; if not, @answer is the failure.
 */
bool library_load(const char *path, const struct library_symbol *symbols, struct driverd_reply *answer);

/* Microsoft's libdxcore.so, loaded into this process. */

/** Loads the library at @path and fills in @answer, whose members belong to the caller. */
void dxcore_describe_adapters(const char *path, struct driverd_reply *answer);

/* NVIDIA's libnvidia-ml.so (NVML) and libcuda.so, loaded into this process. */

/** Loads NVML at @path and fills in @answer, whose members belong to the caller. */
void nvml_list_names(const char *path, struct driverd_reply *answer);

/** Loads libcuda at @path and fills in @answer, as above. */
void cuda_read_version(const char *path, struct driverd_reply *answer);
