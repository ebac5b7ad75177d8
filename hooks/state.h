/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The state that the engine writes to its hooks' standard input. */

#include <stddef.h>

/**
 * state_read() - everything up to the end of standard input
 * @ret_text: the bytes, static
 *
 * Return: 0; -EFBIG if it is larger than a state can be; negative errno.
 */
int state_read(const char **ret_text, size_t *ret_size);
