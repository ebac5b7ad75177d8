/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The host's modprobe(8) loads modules with what they need and as /etc/modprobe.d says. Besides it, ctr-gpu-driverd and
 * ctr-gpu-guard the library starts no program, and it only for a caller that asks for modules.
 */

#include "base/err.h"

/**
 * modprobe_load() - load a module
 * @programs:    directories to search for modprobe, with colons between them
 * @driver_root: modules are taken from there if it has some for this kernel; NULL: "/"
 *
 * modprobe gets no environment, no shell, and none of our descriptors. Return: 0; CTR_GPU_E_KERNEL_MODULE or negative
 * errno with @err set.
 */
int modprobe_load(const char *programs, const char *driver_root, const char *module, struct err *err);
