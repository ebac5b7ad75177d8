/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * For code that may run before the C library has started (early.c): calls of the kernel and comparisons that need no
 * errno, no relocation and no function of the C library. The Makefile compiles such files accordingly.
 */

#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/syscall.h>

/* A loop that copies must not become a call of memcpy(3). */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-tree-loop-distribute-patterns")
#endif

#if defined(__x86_64__)
static inline long plain_call(long number, long a, long b, long c, long d)
{
	register long fourth __asm__("r10") = d;
	long r;

	__asm__ volatile("syscall"
			 : "=a"(r)
			 : "0"(number), "D"(a), "S"(b), "d"(c), "r"(fourth)
			 : "rcx", "r11", "memory");
	return r;
}
#elif defined(__aarch64__)
static inline long plain_call(long number, long a, long b, long c, long d)
{
	register long call __asm__("x8") = number, first __asm__("x0") = a, second __asm__("x1") = b;
	register long third __asm__("x2") = c, fourth __asm__("x3") = d;

	__asm__ volatile("svc 0" : "+r"(first) : "r"(call), "r"(second), "r"(third), "r"(fourth) : "memory");
	return first;
}
#else
#include <errno.h>
#include <unistd.h>
static inline long plain_call(long number, long a, long b, long c, long d)
{
	long r = syscall(number, a, b, c, d);

	return r < 0 ? -errno : r;
}
#endif

/* Return: a descriptor; negative errno. */
static inline int plain_open(int directory, const char *path, int flags)
{
	return (int)plain_call(SYS_openat, directory, (intptr_t)path, flags | O_CLOEXEC, 0);
}

static inline bool plain_stat(int directory, const char *path, int flags, struct stat *ret)
{
#ifdef SYS_newfstatat /* where struct stat is the kernel's */
#ifdef __clang_analyzer__
	*ret = (struct stat){0}; /* it does not see that the kernel writes */
#endif
	return plain_call(SYS_newfstatat, directory, (intptr_t)path, (intptr_t)ret, flags) == 0;
#else
	return fstatat(directory, path, ret, flags) == 0;
#endif
}

/* Return: 0; negative errno. */
static inline long plain_access(const char *path, int mode)
{
	return plain_call(SYS_faccessat, AT_FDCWD, (intptr_t)path, mode, 0);
}

static inline size_t plain_length(const char *text)
{
	size_t length = 0;

	while (text[length])
		length++;
	return length;
}

/* Whether the @length characters at @text are those of @name, and all of them. */
static inline bool plain_is(const char *text, size_t length, const char *name)
{
	size_t i = 0;

	while (i < length && name[i] && text[i] == name[i])
		i++;
	return i == length && !name[i];
}

static inline bool plain_same(const char *text, const char *name)
{
	return plain_is(text, plain_length(text), name);
}
