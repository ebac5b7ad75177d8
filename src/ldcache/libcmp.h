/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The order of names in a loader cache: as strcmp(), but runs of digits compare as numbers, and a digit comes after
 * anything that is none. "libc.so.10" is thus greater than "libc.so.9", and "libc.so.6" equals "libc.so.06". The loader
 * searches with the same function (_dl_cache_libcmp() in glibc's elf/dl-cache.c), so the two must agree.
 */

/** Return: less than, equal to, or greater than 0, as @a is before, equal to, or behind @b. */
int libcmp(const char *a, const char *b);
