/* SPDX-License-Identifier: Apache-2.0 */

#include "model/version.h"

#include <string.h>

#include "base/str.h"

static bool version_is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Moves @text behind the number. */
static bool version_read_part(const char **text, const char *end, uint32_t *ret)
{
	uint64_t value = 0;
	const char *next = *text;

	for (; next < end && version_is_digit(*next); next++) {
		value = value * 10 + (uint64_t)(*next - '0');
		if (value > UINT32_MAX)
			return false;
	}
	if (next == *text)
		return false;
	*text = next;
	*ret = (uint32_t)value;
	return true;
}

/* Of a release candidate or a build, as in "12.2.0-1". */
static bool version_is_suffix(const char *text, const char *end)
{
	if (end - text < 2 || (*text != '-' && *text != '+'))
		return false;
	for (text++; text < end; text++)
		if (!version_is_digit(*text) && !((*text | 0x20) >= 'a' && (*text | 0x20) <= 'z') &&
		    !strchr("-+.", *text))
			return false;
	return true;
}

bool version_read(const char *text, size_t length, struct version *ret)
{
	const char *end = text + length;
	struct version version = {0};

	text += length > 0 && *text == 'v';
	if (!version_read_part(&text, end, &version.parts[version.count++]))
		return false;
	while (text < end && *text == '.' && version.count < VERSION_PARTS_MAX) {
		text++;
		if (!version_read_part(&text, end, &version.parts[version.count++]))
			return false;
	}
	if (text < end && !(version.count == 3 && version_is_suffix(text, end)))
		return false;
	*ret = version;
	return true;
}

int version_compare(const struct version *a, const struct version *b)
{
	for (size_t i = 0; i < ARRAY_SIZE(a->parts); i++)
		if (a->parts[i] != b->parts[i])
			return a->parts[i] < b->parts[i] ? -1 : 1;
	return 0;
}
