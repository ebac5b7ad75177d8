/* SPDX-License-Identifier: Apache-2.0 */

#include "dxg/dxg.h"

#include <errno.h>
#include <stdlib.h>

enum {
	REPLACEMENT = 0xfffd,
	LAST_CHARACTER = 0x10ffff,
	HIGH_SURROGATE = 0xd800,
	LOW_SURROGATE = 0xdc00,
	SURROGATES_END = 0xe000,
	LONGEST_UTF8 = 4, /* bytes of one character; a unit of either encoding never needs more */
};

static bool utf16_is_between(uint32_t c, uint32_t first, uint32_t end)
{
	return c >= first && c < end;
}

/* One unit at @offset; 0, which ends a string, where there is none. */
static uint32_t utf16_unit_at(const struct span *wide, size_t offset, size_t char_size)
{
	uint16_t narrow = 0;
	uint32_t unit = 0;

	if (char_size == sizeof(unit)) {
		(void)span_read(wide, offset, &unit, sizeof(unit));
		return unit;
	}
	(void)span_read(wide, offset, &narrow, sizeof(narrow));
	return narrow;
}

/* One character, 0 at the end; moves @offset past it. */
static uint32_t utf16_next_character(const struct span *wide, size_t *offset, size_t char_size)
{
	uint32_t c = utf16_unit_at(wide, *offset, char_size), low;

	*offset += char_size;
	if (char_size == sizeof(uint16_t) && utf16_is_between(c, HIGH_SURROGATE, LOW_SURROGATE)) {
		low = utf16_unit_at(wide, *offset, char_size);
		if (!utf16_is_between(low, LOW_SURROGATE, SURROGATES_END))
			return REPLACEMENT;
		*offset += char_size;
		return 0x10000 + ((c - HIGH_SURROGATE) << 10) + (low - LOW_SURROGATE);
	}
	if (c > LAST_CHARACTER || utf16_is_between(c, HIGH_SURROGATE, SURROGATES_END))
		return REPLACEMENT;
	return c;
}

static size_t utf16_encode(uint32_t c, char *out)
{
	if (c < 0x80) {
		out[0] = (char)c;
		return 1;
	}
	if (c < 0x800) {
		out[0] = (char)(0xc0 | c >> 6);
		out[1] = (char)(0x80 | (c & 0x3f));
		return 2;
	}
	if (c < 0x10000) {
		out[0] = (char)(0xe0 | c >> 12);
		out[1] = (char)(0x80 | (c >> 6 & 0x3f));
		out[2] = (char)(0x80 | (c & 0x3f));
		return 3;
	}
	out[0] = (char)(0xf0 | c >> 18);
	out[1] = (char)(0x80 | (c >> 12 & 0x3f));
	out[2] = (char)(0x80 | (c >> 6 & 0x3f));
	out[3] = (char)(0x80 | (c & 0x3f));
	return 4;
}

int utf16_from_wide(const struct span *wide, size_t char_size, char **ret)
{
	size_t units = wide->size / char_size, offset = 0, length = 0;
	char *text, *shorter;
	uint32_t c;

	text = malloc(units * LONGEST_UTF8 + 1);
	if (!text)
		return -ENOMEM;
	while ((c = utf16_next_character(wide, &offset, char_size)) != 0)
		length += utf16_encode(c, text + length);
	text[length] = '\0';
	shorter = realloc(text, length + 1);
	*ret = shorter ? shorter : text;
	return 0;
}
