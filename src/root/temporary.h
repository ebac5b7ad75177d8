/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Files that get their names when they are complete. */

#include <sys/types.h>

#include "root/deeds.h"

/* With a number in the place of the question mark. */
#define TEMPORARY ".ctr-gpu-?"
enum { TEMPORARY_SIZE = sizeof(TEMPORARY) };

/**
 * temporary_open() - a new file to write, whose name is out of sight
 * @parent:   directory
 * @ret_name: in it, to be renamed or unlinked
 * @deeds:    where the file becomes the newest deed; its parent is that of the deed below; NULL: nowhere
 *
 * Removes what a killed run left there. May be called in a signal handler without @deeds. Return: descriptor; negative errno.
 */
int temporary_open(int parent, mode_t mode, char ret_name[TEMPORARY_SIZE], struct deeds *deeds);

/** For a deed of what has such a name, above another with the same parent; its number says whether it was made. */
void temporary_undo(const struct deeds *deeds, const struct deed *deed);
