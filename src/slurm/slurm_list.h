/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Slurm's lists of names with numbers, such as "gpu[00-15,20],login", as its configuration files have them. */

#include <stdbool.h>

struct slurm_range {
	unsigned from, to;
	int width; /* with leading zeros */
};

/**
 * slurm_list_read_range() - the next of some ranges
 * @at: where it begins; goes behind what is read, where a comma or the end of the ranges should be
 *
 * Return: whether there was one.
 */
bool slurm_list_read_range(const char **at, struct slurm_range *ret);

/** Whether a list has a name: "node[00-15]" has "node07", "r[0-3]n[0-7]" has "r1n5". */
bool slurm_list_has(const char *list, const char *name);
