/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include_next <string.h>

/* "EINVAL", "SEGV"; NULL if there is none of this number. */
const char *strerrorname_np(int number);
const char *sigabbrev_np(int number);

/*
 * What glibc's headers do for -D_FORTIFY_SOURCE: the compiler passes on how large it knows the target to be, or calls
 * the function itself.
 */
#ifdef _FORTIFY_SOURCE
#define memcpy(to, from, length) __builtin___memcpy_chk(to, from, length, __builtin_object_size(to, 0))
#define memmove(to, from, length) __builtin___memmove_chk(to, from, length, __builtin_object_size(to, 0))
#define memset(to, byte, length) __builtin___memset_chk(to, byte, length, __builtin_object_size(to, 0))
#define strcpy(to, from) __builtin___strcpy_chk(to, from, __builtin_object_size(to, 1))
#define strncpy(to, from, length) __builtin___strncpy_chk(to, from, length, __builtin_object_size(to, 1))
#endif
