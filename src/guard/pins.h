/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The directory of the guard's pins, and the BPF file systems where it may be. Where the usual one was mounted without
 * a mode, everybody may make files and directories in it: then the guard has one of its own. What is there is believed
 * only if nobody but root can have put it there, and if it is the kernel's.
 */

#include <stdbool.h>
#include <stddef.h>

#include "base/paths.h"

#define PINS_NAME "ctr-gpu"
/*
 * Of a load that has not ended; one that was killed leaves them attached. No dot: names with one are the file system's
 * own.
 */
#define PINS_NEXT_NAME "ctr-gpu-next"
#define PINS_USUAL_FILE_SYSTEM "/sys/fs/bpf"
#define PINS_OWN_FILE_SYSTEM PATH_RUN "/bpf"

enum { PINS_USUAL, PINS_OWN, PINS_FILE_SYSTEMS };

/* By these numbers, which is the order to look in. */
extern const char *const pins_file_systems[PINS_FILE_SYSTEMS];

/**
 * pins_open() - the directory of the pins, to begin paths at
 * @ret_file_system: in which of them it is; may be NULL
 *
 * Return: descriptor; -ENOENT if root put none there; -errno.
 */
int pins_open(size_t *ret_file_system);

/** The same below one of the file systems, by name. */
int pins_open_at(size_t file_system, const char *name);

/** Return: a descriptor of a map or link that is pinned in a directory of pins; negative errno. */
int pins_open_pin(int pins, const char *name);

/** Return: a descriptor of one of them; -EPERM if others may write to it, -ENOENT if it is none; negative errno. */
int pins_open_file_system(size_t file_system);

/** Whether somebody else has taken one of the names below it. */
bool pins_are_others(int file_system);

/**
 * pins_remove() - remove a directory of pins and what is in it
 *
 * The map of choices goes first: whoever looks for the guard looks for that. Return: 0, also if root has put no such
 * directory there; negative errno.
 */
int pins_remove(size_t file_system, const char *name);
