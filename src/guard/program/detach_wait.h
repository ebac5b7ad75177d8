/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The programs that are pinned in a directory, by the kernel's numbers, and their end: it comes after the pin's. */

#include <stddef.h>

enum { DETACH_WAIT_MAX = 64 };

struct detach_wait {
	unsigned programs[DETACH_WAIT_MAX];
	size_t count;
};

void detach_wait_read(const char *directory, struct detach_wait *ret);

/** Waits until they are detached, for some seconds at most. */
void detach_wait_wait(const struct detach_wait *running);
