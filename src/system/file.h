/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Small looks at this machine's files, for checks. */

#include <stdbool.h>
#include <sys/types.h>

enum { FILE_TEXT_MAX = 256 * 1024 };

/** The content of a regular file. Return: NULL if it is missing or cannot be read. */
char *file_text(const char *path);

/** The first number in a file. Return: @otherwise if there is none. */
long file_number(const char *path, long otherwise);

bool file_exists(const char *path);

/** Whether there is a character device. */
bool file_is_device(const char *path);

/** Whether whoever runs us may open a node for reading and writing. */
bool file_may_open(const char *path);
