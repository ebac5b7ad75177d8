/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Programs that root alone can have put there are run for what they say: versions, configurations, a journal. */

#include <stdbool.h>
#include <stddef.h>

enum { PROGRAM_OUTPUT_USUAL_MS = 5 * 1000 }; /* for one that only says something of itself */

/**
 * program_output_read() - what a program writes to its standard output, until it ends
 * @arguments: its path, then its arguments; a NULL at the end. It has no environment, input or other descriptors
 * @time_ms:   that it has for that; then it is killed
 * @max:       bytes; what is more is not read
 * @ret:       the bytes, with a null behind them, also of a program that did not end well; NULL without memory
 *
 * Return: whether it ended well, with less than @max.
 */
bool program_output_read(const char *const arguments[], int time_ms, size_t max, char **ret, size_t *ret_size);

/**
 * program_output_read_status() - the same of a program whose exit status says something, too
 *
 * Return: its exit status; -1 if it did not end by itself, or with less than @max.
 */
int program_output_read_status(const char *const arguments[], int time_ms, size_t max, char **ret, size_t *ret_size);
