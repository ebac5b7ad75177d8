/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The kernel module as it runs: its version, its device numbers, and whether a node below /dev is really its own. */

#include <sys/stat.h>

#include "base/err.h"
#include "system/pci.h"

#define NVIDIA_PROC "/proc/driver/nvidia"

struct module {
	char *version; /* "580.159.04" */
	char *devices; /* /proc/devices */
};

void module_clear(struct module *module);
#define _cleanup_module_ _cleanup_(module_clear)

/**
 * module_read() - ask the kernel
 *
 * Return: 0; CTR_GPU_E_NO_DEVICE, with @err untouched, if /dev/nvidiactl is not a character device;
 * CTR_GPU_E_NO_ADAPTER with
 * @err set if it is one and no module stands behind it; negative errno with @err set.
 */
int module_read(struct module *ret, struct err *err);

/** The major number that a driver has for its nodes. @devices: /proc/devices. Return: 0; -ENOENT. */
int module_major(const char *devices, const char *driver, unsigned *ret);

/**
 * module_node() - what a node is, if it belongs to a driver
 * @driver: as /proc/devices calls it: "nvidia", "nvidia-uvm", "nvidia-caps"
 *
 * A name below /dev proves nothing: the number does.
 *
 * Return: 0; -ENOENT if the node is missing; -ENXIO if the driver has no number; -ENODEV if the node is something
 * else; negative errno.
 */
int module_node(const struct module *module, const char *path, const char *driver, struct stat *ret);

/** Whether it is for the module to drive. */
bool module_is_gpu(const struct pci_function *function);

/** A file below /proc or /sys that has less than a page, in one read. Return: 0; negative errno. */
int module_read_small(const char *path, char **ret);

/** The same, however long it is. */
int module_read_file(const char *path, char **ret);
