/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Programs that root alone can have put there are asked what they say of themselves: versions, configurations. */

#include <stdbool.h>
#include <stddef.h>

/**
 * program_output_read() - what a program writes to its standard output, within five seconds
 * @arguments: its path, then its arguments; a NULL at the end. It has no environment, input or other descriptors
 * @max:       bytes; what is more is not read
 * @ret:       the bytes, with a null behind them, also of a program that did not end well; NULL without memory
 *
 * Return: whether it ended well, with less than @max.
 */
bool program_output_read(const char *const arguments[], size_t max, char **ret, size_t *ret_size);
