/* SPDX-License-Identifier: Apache-2.0 */

#include "base/str_size.h"

#include <stdio.h>
#include <strings.h>

static const char units[] = "KMGT";

static bool str_size_is_unit(const char *text, size_t *ret_shift)
{
	*ret_shift = 0;
	if (!*text)
		return true;
	for (size_t i = 0; units[i]; i++)
		if ((*text | 0x20) == (units[i] | 0x20))
			*ret_shift = (i + 1) * 10;
	return *ret_shift > 0 && (!text[1] || strcasecmp(text + 1, "i") == 0 || strcasecmp(text + 1, "iB") == 0 ||
				  strcasecmp(text + 1, "B") == 0);
}

bool str_parse_size(const char *text, uint64_t *ret)
{
	uint64_t number = 0;
	size_t shift;

	if (*text < '0' || *text > '9')
		return false;
	for (; *text >= '0' && *text <= '9'; text++)
		if (__builtin_mul_overflow(number, 10, &number) ||
		    __builtin_add_overflow(number, (uint64_t)(*text - '0'), &number))
			return false;
	if (!str_size_is_unit(text, &shift) || number == 0 || number > (uint64_t)INT64_MAX >> shift)
		return false;
	*ret = number << shift;
	return true;
}

void str_format_size(uint64_t bytes, char ret[static BYTES_TEXT_SIZE])
{
	size_t unit = 0;

	if (bytes < 1024) {
		(void)snprintf(ret, BYTES_TEXT_SIZE, "%u bytes", (unsigned)bytes);
		return;
	}
	while (units[unit + 1] && bytes >> ((unit + 2) * 10) > 0)
		unit++;
	(void)snprintf(ret, BYTES_TEXT_SIZE, "%.1f %ciB", (double)bytes / (double)(1ULL << (unit + 1) * 10),
		       units[unit]);
}
