/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The directories of the guard's pins. Where the BPF file system was mounted without a mode, everybody may make files
 * and directories in it, so what is there is believed only if root made it.
 */

#include <stdbool.h>

/** Return: a descriptor of the guard's directory, to begin paths at; -ENOENT if root put none there; -errno. */
int pins_open(void);

/** Whether root has put the guard's directory there, and nobody else may write to it. It need not have pins. */
bool pins_are_roots(void);

/**
 * pins_remove() - remove a directory of pins and what is in it
 *
 * The map of choices goes first: whoever looks for the guard looks for that. Return: 0, also if there is no such
 * directory; -EPERM if it is not root's alone; -ENOTDIR or -ELOOP if it is none; negative errno.
 */
int pins_remove(const char *directory);
