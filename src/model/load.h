/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What makes a host ready, as steps, plain data: kernel modules, device nodes and their directories. */

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/str.h"

struct load_options {
	const char *driver_root;   /* "/", or where driver files and perhaps a second /dev are; NULL: "/" */
	bool modeset;              /* load nvidia-modeset, too */
	bool replace;              /* put a node in the place of a file, or of a node with another number */
	struct strv imex_channels; /* numbers */
};

enum load_kind { LOAD_MODULE, LOAD_DIRECTORY, LOAD_NODE };
enum load_state { LOAD_MISSING, LOAD_THERE, LOAD_WRONG, LOAD_DONE };

struct load_step {
	enum load_kind kind;
	enum load_state state;
	char *name; /* "nvidia-uvm", "/dev/nvidia-uvm" */
	char *reason;
	char *found;  /* what is in the node's place, where that is wrong; NULL */
	dev_t number; /* of a node */
	mode_t mode;  /* of a node or directory */
	uid_t uid;
	gid_t gid;
};

struct load {
	struct load_step *steps; /* modules first, directories before what is in them */
	size_t count;
	struct strv remarks;
};

void load_clear(struct load *load);
#define _cleanup_load_ _cleanup_(load_clear)

/** Appends a step, whose strings are taken; NULL ones among name and reason count as -ENOMEM. Return: 0 or -ENOMEM. */
int load_add(struct load *load, const struct load_step *step);

/** Appends what @from has, which is empty afterwards. Return: 0 or -ENOMEM. */
int load_merge(struct load *load, struct load *from);
