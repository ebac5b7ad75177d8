/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Layouts that must be the same with both C libraries: the hook is linked with musl, and shares them with objects of the
 * distribution's archives, which were compiled with glibc's headers, with programs that are linked with glibc, and with
 * the guard's maps. The Makefile compiles this file with each and compares names and sizes of what is defined here: an
 * array has as many bytes as what it stands for, or one more for an offset, which may be 0.
 */

#include <elf.h>
#include <jansson.h>
#include <locale.h>
#include <rpc/types.h>
#include <rpc/xdr.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/time.h>
#include <sys/types.h>

#include "guard/layout.h"
#include "ldcache/internal.h"

#define SIZE(name, type)                           \
	extern char size_##name[], align_##name[]; \
	char size_##name[sizeof(type)] = {0};      \
	char align_##name[__alignof__(type)] = {0};
#define AT(name, type, member)              \
	extern char at_##name##_##member[]; \
	char at_##name##_##member[offsetof(type, member) + 1] = {0};

/* What archives and ours give each other by value, or read in what the other has filled. */
SIZE(size_t, size_t)
SIZE(ssize_t, ssize_t)
SIZE(off_t, off_t)
SIZE(time_t, time_t)
SIZE(mode_t, mode_t)
SIZE(va_list, __builtin_va_list)
SIZE(timeval, struct timeval)
AT(timeval, struct timeval, tv_sec)
AT(timeval, struct timeval, tv_usec)
/* jansson asks for the sign of decimals alone. */
AT(lconv, struct lconv, decimal_point)
SIZE(bool_t, bool_t)
SIZE(xdr, XDR)
AT(xdr, XDR, x_op)
AT(xdr, XDR, x_ops)
AT(xdr, XDR, x_public)
AT(xdr, XDR, x_private)
AT(xdr, XDR, x_base)
AT(xdr, XDR, x_handy)
SIZE(json, json_t)
AT(json, json_t, type)
AT(json, json_t, refcount)
SIZE(json_error, json_error_t)
AT(json_error, json_error_t, line)
AT(json_error, json_error_t, position)
AT(json_error, json_error_t, source)
AT(json_error, json_error_t, text)

/* What the hook and ctr-gpu read and write in the guard's maps. */
SIZE(guard_key, struct guard_key)
AT(guard_key, struct guard_key, hierarchy)
SIZE(guard_choice, struct guard_choice)
AT(guard_choice, struct guard_choice, state)
AT(guard_choice, struct guard_choice, luids)
SIZE(guard_counts, struct guard_counts)
AT(guard_counts, struct guard_counts, first)

/* What one of them writes into a file of a container or of /run, and the other reads. */
SIZE(cache_header, struct cache_header)
SIZE(cache_entry, struct cache_entry)
SIZE(cache_extension, struct cache_extension)
SIZE(cache_section, struct cache_section)
AT(cache_section, struct cache_section, offset)
SIZE(elf_header, Elf64_Ehdr)
AT(elf_header, Elf64_Ehdr, e_shoff)
