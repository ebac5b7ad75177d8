/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Which memory of this process the client's kernels reach. */

#include <stdint.h>

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
