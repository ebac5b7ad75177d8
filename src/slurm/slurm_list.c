/* SPDX-License-Identifier: Apache-2.0 */

#include "slurm/slurm_list.h"

#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	WIDTH_MAX = 16,
	DIGITS_MAX = 9, /* of a number that an unsigned has room for */
	NAME_LENGTH_MAX = HOST_NAME_MAX,
};

/* Goes behind the digits. Return: how many there were. */
static int slurm_list_read_number(const char **at, unsigned *ret)
{
	const char *start = *at;
	unsigned long number;
	char *end;

	if (*start < '0' || *start > '9')
		return 0;
	number = strtoul(start, &end, 10);
	*ret = number < UINT_MAX ? (unsigned)number : UINT_MAX;
	*at = end;
	return end - start > WIDTH_MAX ? WIDTH_MAX + 1 : (int)(end - start);
}

bool slurm_list_read_range(const char **at, struct slurm_range *ret)
{
	const char *to;

	ret->width = slurm_list_read_number(at, &ret->from);
	if (ret->width == 0 || ret->width > WIDTH_MAX)
		return false;
	ret->to = ret->from;
	to = *at + 1;
	if (**at == '-' && slurm_list_read_number(&to, &ret->to) > 0)
		*at = to;
	return true;
}

/* Whether some digits are a number of the ranges, with as many zeros before it. */
static bool slurm_list_ranges_have(const char *ranges, const char *digits, int size)
{
	struct slurm_range range;
	unsigned number = 0;

	for (int i = 0; i < size; i++)
		number = number * 10 + (unsigned)(digits[i] - '0');
	for (; slurm_list_read_range(&ranges, &range); ranges++) {
		if (number >= range.from && number <= range.to &&
		    snprintf(NULL, 0, "%0*u", range.width, number) == size)
			return true;
		if (*ranges != ',')
			break;
	}
	return false;
}

/* Which parts of a name, by their lengths, are what an item says so far. */
struct slurm_list_match {
	bool lengths[NAME_LENGTH_MAX + 1];
};

/* @at: the part of the name that is matched; the next of the item are ranges. */
static void slurm_list_match_ranges(const char *ranges, const char *name, size_t at, struct slurm_list_match *next)
{
	for (int size = 1;
	     size <= DIGITS_MAX && name[at + (size_t)size - 1] >= '0' && name[at + (size_t)size - 1] <= '9'; size++)
		if (slurm_list_ranges_have(ranges, name + at, size))
			next->lengths[at + (size_t)size] = true;
}

/*
 * Whether the item at @item, up to a comma, has a name. All ways to divide digits among ranges are followed at once:
 * one after the other they would be more than can be counted.
 */
static bool slurm_list_item_has(const char *item, const char *name)
{
	struct slurm_list_match match = {.lengths = {true}};
	const size_t length = strlen(name);

	for (; *item && *item != ','; item++) {
		const char *end = *item == '[' ? strchr(item, ']') : item;
		struct slurm_list_match next = {0};

		if (!end)
			return false;
		for (size_t at = 0; at < length; at++)
			if (match.lengths[at] && *item == '[')
				slurm_list_match_ranges(item + 1, name, at, &next);
			else if (match.lengths[at] && name[at] == *item)
				next.lengths[at + 1] = true;
		match = next;
		item = end;
	}
	return match.lengths[length];
}

bool slurm_list_has(const char *list, const char *name)
{
	bool inside = false, begins = true;

	if (strlen(name) > NAME_LENGTH_MAX)
		return false;
	for (; *list; list++) {
		if (begins && slurm_list_item_has(list, name))
			return true;
		inside = *list == '[' || (inside && *list != ']');
		begins = *list == ',' && !inside;
	}
	return false;
}
