/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What is really attached: the pins of a directory that the kernel knows as links, by its own numbers of them and of
 * their programs. A pin alone proves nothing.
 */

#include <stdbool.h>
#include <stddef.h>

/* A symlink beside the pins, to how many links a load has made, and to its number. */
#define LINKS_NOTE "links"

enum { LINKS_MAX = 64 };

struct links {
	size_t count;
	unsigned ids[LINKS_MAX], programs[LINKS_MAX];
};

/** Reads them from a directory of pins. Return: 0 or negative errno. */
int links_read(int pins, struct links *ret);

/** Whether those are all that the load has made. */
bool links_are_complete(int pins, const struct links *links);

/** Return: the number of the load that made the pins; 0: none. */
unsigned links_load(int pins);

/** Whether the guard is attached, as far as the caller may see. */
bool links_are_attached(void);
