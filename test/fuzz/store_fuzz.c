/* SPDX-License-Identifier: Apache-2.0 */

/* Wide strings of any bytes: what becomes of them is UTF-8, and as a store's path names a directory below the drivers. */

#include <stdlib.h>
#include <string.h>

#include "base/paths.h"
#include "dxg/dxg.h"
#include "wsl/internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
	if (!condition)
		abort();
}

/* By the table of RFC 3629. */
static size_t character(const unsigned char *c)
{
	static const struct {
		unsigned char first, last, low, high;
		size_t size;
	} table[] = {
		{0x01, 0x7f, 0, 0, 1},       {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3},
		{0xe1, 0xec, 0x80, 0xbf, 3}, {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3},
		{0xf0, 0xf0, 0x90, 0xbf, 4}, {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4},
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		if (c[0] < table[i].first || c[0] > table[i].last)
			continue;
		require(table[i].size == 1 || (c[1] >= table[i].low && c[1] <= table[i].high));
		for (size_t k = 2; k < table[i].size; k++)
			require((c[k] & 0xc0) == 0x80);
		return table[i].size;
	}
	abort();
}

static void check(const uint8_t *data, size_t size, size_t char_size)
{
	char *text = NULL, *path = NULL;

	require(utf16_from_wide(&(struct span){data, size}, char_size, &text) == 0);
	require(strlen(text) <= size / char_size * 4);
	for (const unsigned char *c = (const unsigned char *)text; *c;)
		c += character(c);
	if (store_directory(text, &path) == 0) {
		require(strncmp(path, PATH_WSL_DRIVERS "/", sizeof(PATH_WSL_DRIVERS)) == 0);
		require(!strstr(path, "/..") || strstr(path, "/..")[3] != '/');
	}
	free(path);
	free(text);
}

/* The same bytes as ASCII widened, so that paths come up. */
static void check_widened(const uint8_t *data, size_t size)
{
	static const char prefix[] = "C:\\FileRepository\\";
	uint16_t wide[512];
	size_t count = 0;

	for (size_t i = 0; i < sizeof(prefix) - 1; i++)
		wide[count++] = (uint16_t)prefix[i];
	for (size_t i = 0; i < size && count < sizeof(wide) / sizeof(wide[0]); i++)
		wide[count++] = data[i];
	check((const uint8_t *)wide, count * sizeof(wide[0]), 2);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	check(data, size, 2);
	check(data, size, 4);
	check_widened(data, size);
	return 0;
}
