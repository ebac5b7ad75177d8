/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/suggest.h"

#include <stdio.h>
#include <string.h>

enum {
	LENGTH_MAX = 16, /* no command is longer */
	NEAR = 2,
};

static size_t suggest_min3(size_t a, size_t b, size_t c)
{
	size_t least = a < b ? a : b;

	return least < c ? least : c;
}

/*
 * How many letters must be inserted, removed, replaced, or swapped with their neighbour. Both are at most LENGTH_MAX
 * long.
 */
static size_t suggest_distance(const char *a, const char *b)
{
	size_t table[LENGTH_MAX + 1][LENGTH_MAX + 1];
	size_t a_length = strlen(a), b_length = strlen(b);

	for (size_t i = 0; i <= a_length; i++)
		table[i][0] = i;
	for (size_t j = 0; j <= b_length; j++)
		table[0][j] = j;
	for (size_t i = 1; i <= a_length; i++) {
		for (size_t j = 1; j <= b_length; j++) {
			size_t replaced = table[i - 1][j - 1] + (a[i - 1] != b[j - 1]);

			table[i][j] = suggest_min3(table[i - 1][j] + 1, table[i][j - 1] + 1, replaced);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				table[i][j] = suggest_min3(table[i][j], table[i - 2][j - 2] + 1, table[i][j]);
		}
	}
	return table[a_length][b_length];
}

static const char *suggest_nearest(const struct verb *table, const char *name)
{
	const char *nearest = NULL;
	size_t least = NEAR + 1;

	if (strlen(name) > LENGTH_MAX)
		return NULL;
	for (const struct verb *verb = table; verb->name; verb++) {
		size_t letters = suggest_distance(name, verb->name);

		/* The beginning of a name is as near as can be; but of two letters everything is near everything. */
		if (*name && strncmp(verb->name, name, strlen(name)) == 0)
			letters = 0;
		if (letters < least && letters < strlen(name)) {
			least = letters;
			nearest = verb->name;
		}
	}
	return nearest;
}

void suggest_verb(const struct verb *table, const char *program, const char *name)
{
	const char *nearest = suggest_nearest(table, name);

	if (nearest)
		(void)fprintf(stderr, "%s: unknown command '%s'; did you mean '%s'?\n", program, name, nearest);
	else
		(void)fprintf(stderr, "%s: unknown command '%s'; '%s --help' lists them\n", program, name, program);
}
