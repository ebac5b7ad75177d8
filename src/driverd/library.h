/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A driver's library, loaded into this process, and those of its functions that are asked for. */

#include <stdbool.h>

#include "driverd/protocol.h"

struct library_symbol {
	const char *name; /* NULL ends a table */
	void *function;   /* a pointer to a function, which is set; to NULL where an optional one is missing */
	bool optional;
};

/**
 * library_load() - load the library at @path, and find its functions
 *
 * It stays loaded, so that the answer does not wait for its destructors.
 *
 * Return: whether that worked; if not, @answer is the failure.
 */
bool library_load(const char *path, const struct library_symbol *symbols, struct driverd_reply *answer);
