/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The programs that are pinned in a directory, by the kernel's numbers, and their end: it comes after the pin's. */

#include <stddef.h>

enum { RUNNING_MAX = 64 };

struct running {
	unsigned programs[RUNNING_MAX];
	size_t count;
};

void running_read(const char *directory, struct running *ret);

/** Waits until they are detached, for some seconds at most. */
void running_wait(const struct running *running);
