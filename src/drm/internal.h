/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the files of this folder share, a section for each. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "model/adapter.h"
#include "model/backend.h"

/* ---- card ---- */

/* GPUs and NPUs as the kernel lists them in /sys/class, and their nodes in /dev. */

struct card_class {
	const char *sysfs, *dev; /* directories */
	const char *prefix;      /* of the names of its nodes */
};

extern const struct card_class card_screen, card_compute;

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

/* ---- topology ---- */

/*
 * GPUs as AMD's compute driver (KFD) describes them below /sys/class/kfd: their unique ids, and the GPU of each compute
 * partition. A partition is not a PCI device itself.
 */

struct topology_node {
	unsigned render_minor;     /* of /dev/dri/renderD<minor> */
	uint64_t unique_id;        /* one for all partitions of a GPU; 0: it has none */
	unsigned gfx_target;       /* 90402 is gfx942 */
	uint32_t domain, location; /* location: bus, device and function as PCI has them, in 16 bits */
};

/** Reads a node's "properties". Return: whether it is a GPU, since processors are nodes, too. */
bool topology_parse(const char *text, struct topology_node *ret);

/** "gfx942". The last two digits of three may be hexadecimal. */
enum { TOPOLOGY_TARGET_SIZE = 16 };
void topology_format_target(unsigned gfx_target, char text[TOPOLOGY_TARGET_SIZE]);

/* ---- drm ---- */

/*
 * The backend for GPUs and NPUs of AMD and Intel on native Linux: drivers of the kernel's own (amdgpu, i915, xe,
 * intel_vpu, amdxdna), whose libraries are the image's. A container needs their device nodes and nothing else.
 */

extern const struct backend backend_drm;
extern const struct backend_load loader_drm;
