/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Amounts of memory as people write them: "8G", "512M", "1073741824". */

#include <stdbool.h>
#include <stdint.h>

enum { BYTES_TEXT_SIZE = 32 };

/** Reads a whole number above 0 with K, M, G or T (or Ki, KiB …) behind it, or nothing. Return: whether it is one. */
bool str_parse_size(const char *text, uint64_t *ret);

/** Writes "8.0 GiB", "512.0 MiB". */
void str_format_size(uint64_t bytes, char ret[static BYTES_TEXT_SIZE]);
