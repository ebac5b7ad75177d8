/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Version numbers of drivers, of CUDA and of what images require: "12.4", "570.86.10". */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { VERSION_PARTS_MAX = 4 };

struct version {
	uint32_t parts[VERSION_PARTS_MAX]; /* those that are not written are 0 */
	size_t count;
};

/**
 * version_read() - the only reader of version numbers that come from images and drivers
 * @length: how much of @text to read; the rest is not looked at
 *
 * One to four decimal numbers below 2^32 with single dots between them. Like semantic versions it may begin with a "v",
 * and after three numbers go on with a "-" or "+" and what does not count.
 *
 * Return: whether it is one.
 */
bool version_read(const char *text, size_t length, struct version *ret);

/** Return: <0, 0 or >0, as strcmp(3); "470" equals "470.0". */
int version_compare(const struct version *a, const struct version *b);
