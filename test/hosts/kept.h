/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What ldconfig(8) makes of a host behind /dev/dxg: it looks at every library of the machine, which takes longer than all else, and
 * makes the same of the same files. So it is kept beside the files that hosts are made of, under a name that tells the state of all
 * that it depends on.
 */

#include <stdbool.h>

#include "profile.h"

enum { KEPT_PATH_MAX = 512 };

struct kept {
	char directory[KEPT_PATH_MAX]; /* where it is or would be; "" if it is not kept */
};

/** To be called while the machine's /etc is visible. @files: the directory that hosts are made of */
void kept_find(const struct profile *profile, const char *files, struct kept *ret);

/** Return: whether the cache is now in /etc, and the links in @lib */
bool kept_use(const struct kept *kept, const char *lib);

/** Keeps /etc/ld.so.cache and the links that ldconfig(8) made in @lib_upper, if that is possible. */
void kept_save(const struct kept *kept, const char *lib_upper);
