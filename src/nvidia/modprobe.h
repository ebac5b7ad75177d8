/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The host's modprobe(8), which knows what modules need and what /etc/modprobe.d says of them. Together with
 * ctr-gpu-driverd it is the only program that the library ever starts, and only where somebody asks for modules by
 * name.
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
