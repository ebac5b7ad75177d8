/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Telling the engine why a container cannot be created, where it looks for the last words of its runtime. */

#include <ctr-gpu.h>

#include "command_line.h"

/**
 * failure_tell() - write to standard error, and to the log if the engine wants one
 * @result: negative errno or CTR_GPU_E_*
 * @text:   sentences of the library
 *
 * Return: the program's exit status.
 */
int failure_tell(const struct command_line *line, int r, const char *text);
