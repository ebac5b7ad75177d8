/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The runtimes that a configuration names, where it is written so plainly that no JSON parser is needed: one object of
 * texts without escapes, whole numbers, true, false, null, and lists of texts. All else is left to
 * ctr_gpu_context_load_config(). May run before the C library has started.
 */

#include <stdbool.h>
#include <stddef.h>

enum { CHOSEN_MAX = 8 };

struct chosen_item {
	const char *text; /* in the configuration, without a NUL at its end */
	size_t length;
};

struct chosen {
	struct chosen_item items[CHOSEN_MAX];
	size_t count; /* 0: none is named */
};

/** Return: whether the list is the one that the settings would have; false where that is not sure. */
bool chosen_read(const char *data, size_t size, struct chosen *ret);
