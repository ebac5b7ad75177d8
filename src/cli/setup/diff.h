/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What would change in a file, as `diff -u` shows it and patch(1) takes it. */

#include <stdio.h>

#include "engines/text.h"

/**
 * diff_write() - write the difference of two texts
 * @path: of the file, for the heading
 *
 * Equal texts have none, and nothing is written. Return: 0 or -ENOMEM.
 */
int diff_write(const struct text_buffer *before, const struct text_buffer *after, const char *path, FILE *file);
