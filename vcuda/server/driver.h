/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The real driver library. A function that it does not have is NULL here. The struct is in vcuda/driver_api.h. */

#include <stdint.h>

#include "vcuda/protocol/types.h"

struct driver_api;
extern struct driver_api driver;

enum { DRIVER_VERSION = 32 };

/** Return: its version, as its file's name says it ("580.159.04"), in DRIVER_VERSION bytes; "" if that says none. */
const char *driver_name(void);

/** Return: another library of the driver's, from where its first one is; NULL if it has none of that name. */
void *driver_load_beside(const char *name);

/** Loads it. Return: 0; a negative errno. */
int driver_load(const char *library);

/* Which memory of this process the client's kernels reach. */

/* The first call to /dev/nvidia-uvm, whose answer is in @status. */
struct uvm_flags_begin {
	uint64_t flags;
	uint32_t status;
};

/**
 * uvm_flags_begin() - make that call so that kernels reach nothing but what the driver maps for them
 * @begin: the driver's parameters; its flags become those that the call was made with at last
 * @call:  the system call
 *
 * Where the kernel's driver knows of no such flag, the call is made as it was asked for.
 *
 * Return: what @call did.
 */
int uvm_flags_begin(int fd, struct uvm_flags_begin *begin, int (*call)(int fd, struct uvm_flags_begin *begin));
