/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* GPUs and NPUs as the kernel lists them in /sys/class, and their nodes in /dev. */

#include <sys/stat.h>

#include "model/adapter.h"

struct card_class {
	const char *sysfs, *dev; /* directories */
	const char *prefix;      /* of the names of its nodes */
};

extern const struct card_class card_render, card_screen, card_accelerator, card_compute;

/**
 * card_node() - look at a node in /dev
 * @ret_path: owned by the caller
 *
 * Return: 0; -ENOENT if it is missing; -ENODEV if it is another device than the kernel has under this name; -ENOMEM.
 */
int card_node(const struct card_class *class, const char *name, char **ret_path, struct stat *ret);

/** The class of an adapter's own node, whose name is the prefix and the minor. */
const struct card_class *card_class(const struct adapter *adapter);

/** Appends every GPU and NPU of AMD and Intel, usable or not. Return: 0 or -ENOMEM. */
int cards_read(const struct backend *backend, struct inventory *inventory);
