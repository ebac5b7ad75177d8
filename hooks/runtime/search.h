/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Looking for a program that the machine has. */

#include <stdbool.h>
#include <stddef.h>

enum { SEARCH_PATH_MAX = 4096 };

/**
 * search_program() - find a program that can be executed and is not this one under another name
 * @name:   an absolute path, or what is looked for in directories
 * @places: the value of PATH, or NULL; where nothing is found there, the usual directories are searched
 * @ret:    its path
 *
 * Return: whether there is one.
 */
bool search_program(const char *name, const char *places, char ret[SEARCH_PATH_MAX]);
