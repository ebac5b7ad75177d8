/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Where ctr-gpu's own programs are, and whether they fit each other. */

#include <stdbool.h>

#include "base/err.h"
#include "model/settings.h"

struct stat;

/** Whether only the system and the caller can change the file. */
bool own_programs_is_trusted(const struct stat *file);

/** Return: the path of a program beside the one that runs, owned by the caller; NULL if that is unknown. */
char *own_programs_beside(const char *name);

/**
 * own_programs_find_driverd() - ctr-gpu-driverd: the one that is configured, or else the first in the usual places
 * @advice: what to try besides, if it is missing; NULL: nothing
 *
 * Return: 0; CTR_GPU_E_NO_PERMISSION if others may change it; -ENOENT; -ENOMEM; @err is set.
 */
int own_programs_find_driverd(const struct settings *settings, const char *advice, char **ret, struct err *err);

/**
 * own_programs_read_version() - a program's version from its ELF note, so that the program need not be run
 *
 * Return: 0; -ENOENT if it has no such note; negative errno if it cannot be read. @ret is owned by the caller.
 */
int own_programs_read_version(const char *path, char **ret);
