/* SPDX-License-Identifier: Apache-2.0 */

#include "ldcache/libcmp.h"

#include <stdbool.h>
#include <stdint.h>

/* No number in a real name is longer. Bounds what a hostile name of a million digits costs. */
enum { MAX_DIGITS = 64 };

static bool libcmp_is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* glibc computes in int, where a long number wraps around in practice; unsigned does so by definition. */
static int32_t libcmp_read_number(const char **text)
{
	const char *next = *text;
	uint32_t value = 0;

	for (int i = 0; i < MAX_DIGITS && libcmp_is_digit(*next); i++)
		value = value * 10 + (uint32_t)(*next++ - '0');
	*text = next;
	return (int32_t)value;
}

int libcmp(const char *a, const char *b)
{
	while (*a) {
		if (libcmp_is_digit(*a) && libcmp_is_digit(*b)) {
			int32_t left = libcmp_read_number(&a), right = libcmp_read_number(&b);

			if (left != right)
				return left > right ? 1 : -1;
		} else if (libcmp_is_digit(*a)) {
			return 1;
		} else if (libcmp_is_digit(*b)) {
			return -1;
		} else if (*a != *b) {
			return *a - *b;
		} else {
			a++;
			b++;
		}
	}
	return *a - *b;
}
