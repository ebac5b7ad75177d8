/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Where things are in the bytes of a loader cache: found and bounded, nothing copied. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/span.h"

struct cache_layout {
	struct span file;
	struct span entries;
	size_t entry_size; /* of struct cache_entry or struct cache_old_entry, which begin alike */
	size_t count;
	struct span strings;       /* behind the entries; ends in a NUL, so that whatever starts inside ends inside */
	uint32_t strings_offset;   /* of the first string, as entries count */
	uint32_t extension_offset; /* in the file; 0: none */
	uint8_t order;             /* CACHE_ORDER_* */
};

/** Return: false if the loader of this machine would not read it, or should not. */
bool cache_layout_read(const struct span *file, struct cache_layout *ret);

/** The string at an entry's offset. Return: NULL if it is not one. */
static inline const char *cache_layout_string(const struct cache_layout *layout, uint32_t offset)
{
	uint32_t inside = offset - layout->strings_offset;

	if (offset < layout->strings_offset || inside >= layout->strings.size)
		return NULL;
	return (const char *)layout->strings.data + inside;
}
