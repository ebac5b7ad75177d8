/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Programs as an engine finds them: by name, on a PATH, in a root directory; and whose they are. */

#include <stdbool.h>
#include <sys/stat.h>

#include "root/rootfs.h"

/* What services are started with where nothing else is known. */
#define PATH_LOOKUP_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

struct program {
	char *path;     /* as it was found; NULL: not at all */
	bool ours;      /* it is, or leads to, a program of ctr-gpu */
	struct stat st; /* of what was found, a link itself where it is one */
};

void path_lookup_clear(struct program *program);
#define _cleanup_program_ _cleanup_(path_lookup_clear)

/** Looks in each directory of @path. Return: whether there is one that may be executed. */
bool path_lookup_find(const struct rootfs *root, const char *path, const char *name, struct program *ret);

/** The same for one absolute path. */
bool path_lookup_look(const struct rootfs *root, const char *path, struct program *ret);

/** Whether this machine has it: on our PATH, the usual one, or as a snap. */
bool path_lookup_is_here(const char *name);
