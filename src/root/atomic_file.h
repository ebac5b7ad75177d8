/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Files that get their names once they are complete. */

#include <sys/types.h>

#include "root/undo_log.h"

enum { ATOMIC_FILE_SIZE = sizeof(".ctr-gpu-0") };

/**
 * atomic_file_open() - create a file to write, under a temporary name
 * @proc_self_fd: of /proc/self/fd; -1: no other process writes in @parent
 * @parent:       directory
 * @ret_name:     in it, to be renamed or unlinked
 * @undo_log:     where the file becomes the newest step, with the parent of the step below; NULL: nowhere
 *
 * Removes what a killed run left there. May be called in a signal handler without @undo_log. Return: descriptor;
 * negative errno.
 */
int atomic_file_open(int proc_self_fd, int parent, mode_t mode, char ret_name[ATOMIC_FILE_SIZE],
		     struct undo_log *undo_log);

/**
 * atomic_file_link() - make a symlink under a temporary name, then rename it to @name
 * @file: of atomic_file_open(), still open; the caller removes it in any case
 *
 * Return: 0; negative errno.
 */
int atomic_file_link(int parent, const char *file, const char *points_to, const char *name);
