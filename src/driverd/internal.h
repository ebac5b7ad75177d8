/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the files of ctr-gpu-driverd have of each other. */

#include <stdbool.h>

#include "driverd/protocol.h"

/* The rights that ctr-gpu-driverd gives up before it loads a vendor's library. */

/**
 * sandbox_enter() - keep nothing but what a driver library needs to describe the hardware
 * @milliseconds:  after which the kernel ends the process, whatever the library does; DRIVERD_NO_DEADLINE
 * @opens_devices: whether files may be opened for writing; none is created or truncated in any case
 * @ret_step:      on failure, what could not be done; static
 *
 * Return: 0 or negative errno.
 */
int sandbox_enter(unsigned milliseconds, bool opens_devices, const char **ret_step);

/* A driver's library, loaded into this process, and those of its functions that are asked for. */

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
 * Return: whether that worked; if not, @reply is the failure.
 */
bool library_load(const char *path, const struct library_symbol *symbols, struct driverd_reply *reply);

/* Microsoft's libdxcore.so, loaded into this process. */

/** Loads the library at @path and fills in @reply, whose members belong to the caller. */
void dxcore_describe_adapters(const char *path, struct driverd_reply *reply);

/* NVIDIA's libnvidia-ml.so (NVML) and libcuda.so, loaded into this process. */

/** Loads NVML at @path and fills in @reply, whose members belong to the caller. */
void nvml_list_names(const char *path, struct driverd_reply *reply);

/** The same, and which processes use these. */
void nvml_list_processes(const char *path, struct driverd_reply *reply);

/**
 * nvml_watch() - tell what happens to GPUs, in answers on a socket
 *
 * Return: where it cannot begin, with @reply as the failure, or when the caller has gone.
 */
void nvml_watch(const struct driverd_request *request, int socket, struct driverd_reply *reply);

/** Loads libcuda at @path and fills in @reply, as above. */
void cuda_read_version(const char *path, struct driverd_reply *reply);
