/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include_next <stdio.h>

#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE (1 << 0) /* linux/fs.h */

/* Declared alone: the hook makes no device nodes on the host. */
int renameat2(int from, const char *from_path, int to, const char *to_path, unsigned flags);
#endif

/* As in string.h. */
#ifdef _FORTIFY_SOURCE
#define snprintf(to, size, ...) __builtin___snprintf_chk(to, size, 0, __builtin_object_size(to, 1), __VA_ARGS__)
#define vsnprintf(to, size, format, arguments) \
	__builtin___vsnprintf_chk(to, size, 0, __builtin_object_size(to, 1), format, arguments)
#endif
