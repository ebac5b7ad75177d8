/* SPDX-License-Identifier: Apache-2.0 */

#include "base/printable.h"

#include <stdint.h>

#include "base/cleanup.h"

/* Bytes of a character, and the first that needs so many (RFC 3629). */
static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};

/* Surrogates, what is beyond the last character, and Unicode's Cc, Zl, Zp and what sets a direction. */
static const struct {
	uint32_t first, last;
} hidden[] = {
	{0, 0x1f},        {0x7f, 0x9f},     {0x61c, 0x61c},   {0x200e, 0x200f},       {0x2028, 0x202e},
	{0x2066, 0x2069}, {0xd800, 0xdfff}, {0xfeff, 0xfeff}, {0x110000, UINT32_MAX},
};

static size_t printable_count(unsigned char first)
{
	if (first < 0x80)
		return 1;
	return first >= 0xf8 ? 0 : first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc0 ? 2 : 0;
}

size_t printable_read(const char *text, uint32_t *ret)
{
	const unsigned char *bytes = (const unsigned char *)text;
	size_t count = printable_count(bytes[0]);
	uint32_t c = count > 1 ? bytes[0] & (0x7fU >> count) : bytes[0];

	for (size_t i = 1; i < count; i++) {
		if ((bytes[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (bytes[i] & 0x3f);
	}
	*ret = c;
	return count > 0 && c >= least[count] ? count : 0;
}

size_t printable_length(const char *text)
{
	uint32_t c;
	size_t count;

	/* Nearly all is ASCII, for which no table is needed. */
	if (*text >= ' ' && *text <= '~')
		return 1;
	count = printable_read(text, &c);
	for (size_t i = 0; i < ARRAY_SIZE(hidden) && count > 0; i++)
		if (c >= hidden[i].first && c <= hidden[i].last)
			return 0;
	return count;
}

bool printable_is_all(const char *text)
{
	size_t length = 1;

	for (; *text && length > 0; text += length)
		length = printable_length(text);
	return length > 0;
}

void printable_only(char *text)
{
	while (*text) {
		size_t length = printable_length(text);

		if (length == 0)
			*text = '?';
		text += length + (length == 0);
	}
}
