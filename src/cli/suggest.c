/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/suggest.h"

#include <stdio.h>
#include <string.h>
#include <sys/param.h>

enum {
	LENGTH_MAX = 16, /* no command is longer */
	NEAR = 2,
};

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

			table[i][j] = MIN(MIN(table[i - 1][j], table[i][j - 1]) + 1, replaced);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				table[i][j] = MIN(table[i][j], table[i - 2][j - 2] + 1);
		}
	}
	return table[a_length][b_length];
}

void suggest_verb(const struct verb *table, const char *program, const char *name)
{
	const char *nearest = NULL;
	size_t least = NEAR + 1;

	for (const struct verb *verb = table; verb->name && strlen(name) <= LENGTH_MAX; verb++) {
		size_t letters = suggest_distance(name, verb->name);

		/* The beginning of a name is an exact match. A word is not near if all its letters must change. */
		if (*name && strncmp(verb->name, name, strlen(name)) == 0)
			letters = 0;
		if (letters < least && letters < strlen(name)) {
			least = letters;
			nearest = verb->name;
		}
	}
	if (nearest)
		(void)fprintf(stderr, "%s: unknown command '%s'; did you mean '%s'?\n", program, name, nearest);
	else
		(void)fprintf(stderr, "%s: unknown command '%s'; '%s --help' lists them\n", program, name, program);
}
