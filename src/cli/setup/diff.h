/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What would change in a file, as a unified diff that patch(1) takes. */

#include <stdbool.h>
#include <stdio.h>

#include "engines/text.h"

/**
 * diff_write() - write the difference of two texts
 * @path:  of the file
 * @from:  what it holds; NULL if there is no file
 * @to:    what it would hold; NULL if there would be none
 *
 * Nothing is written where they are the same.
 *
 * Return: 0 or -ENOMEM.
 */
int diff_write(const char *path, const struct text *from, const struct text *to, FILE *file);
