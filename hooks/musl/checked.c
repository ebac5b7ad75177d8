/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What jansson, libyaml and libtirpc call in the place of C's own functions, because distributions compile them with
 * glibc's headers, and the hook by string.h and stdio.h beside this file: functions that know the size of what they
 * write to, and end the program rather than write past it (_FORTIFY_SOURCE; the names are glibc's and LSB's), and those
 * of C23. Distributions differ in which are called. What else these libraries call is the same in glibc and musl; where
 * that is not so, the linker finds no such function.
 */

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PRINTF(text, first) __attribute__((format(printf, text, first)))

int __snprintf_chk(char *to, size_t max, int flag, size_t size, const char *format, ...) PRINTF(5, 6);
int __vsnprintf_chk(char *to, size_t max, int flag, size_t size, const char *format, va_list arguments) PRINTF(5, 0);
int __sprintf_chk(char *to, int flag, size_t size, const char *format, ...) PRINTF(4, 5);
int __fprintf_chk(FILE *file, int flag, const char *format, ...) PRINTF(3, 4);
void *__memcpy_chk(void *to, const void *from, size_t length, size_t size);
void *__memmove_chk(void *to, const void *from, size_t length, size_t size);
void *__memset_chk(void *to, int byte, size_t length, size_t size);
char *__strcpy_chk(char *to, const char *from, size_t size);
char *__strncpy_chk(char *to, const char *from, size_t length, size_t size);
long long __isoc23_strtoll(const char *text, char **ret_end, int base);

static void checked_room(size_t length, size_t size)
{
	if (length > size)
		abort();
}

int __vsnprintf_chk(char *to, size_t max, int flag, size_t size, const char *format, va_list arguments)
{
	(void)flag;
	checked_room(max, size);
	return (vsnprintf)(to, max, format, arguments);
}

int __snprintf_chk(char *to, size_t max, int flag, size_t size, const char *format, ...)
{
	va_list arguments;
	int r;

	va_start(arguments, format);
	r = __vsnprintf_chk(to, max, flag, size, format, arguments);
	va_end(arguments);
	return r;
}

int __sprintf_chk(char *to, int flag, size_t size, const char *format, ...)
{
	va_list arguments;
	int r;

	(void)flag;
	va_start(arguments, format);
	r = (vsnprintf)(to, size < INT_MAX ? size : INT_MAX, format, arguments);
	va_end(arguments);
	if (r >= 0)
		checked_room((size_t)r + 1, size);
	return r;
}

int __fprintf_chk(FILE *file, int flag, const char *format, ...)
{
	va_list arguments;
	int r;

	(void)flag;
	va_start(arguments, format);
	r = vfprintf(file, format, arguments);
	va_end(arguments);
	return r;
}

void *__memcpy_chk(void *to, const void *from, size_t length, size_t size)
{
	checked_room(length, size);
	return (memcpy)(to, from, length);
}

void *__memmove_chk(void *to, const void *from, size_t length, size_t size)
{
	checked_room(length, size);
	return (memmove)(to, from, length);
}

void *__memset_chk(void *to, int byte, size_t length, size_t size)
{
	checked_room(length, size);
	return (memset)(to, byte, length);
}

char *__strcpy_chk(char *to, const char *from, size_t size)
{
	checked_room(strlen(from) + 1, size);
	return (strcpy)(to, from);
}

char *__strncpy_chk(char *to, const char *from, size_t length, size_t size)
{
	checked_room(length, size);
	return (strncpy)(to, from, length);
}

/* Since glibc 2.38. In the bases 0 and 2 it also reads 0b1; jansson reads numbers in base 10. */
long long __isoc23_strtoll(const char *text, char **ret_end, int base)
{
	return strtoll(text, ret_end, base);
}
