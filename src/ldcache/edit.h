/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a merge does to the image's entries: a short list of places where some are taken out and one of ours is put in.
 * It is as long as the list of our libraries, however many the image has.
 */

#include <stddef.h>
#include <stdint.h>

#include "ldcache/image.h"
#include "ldcache/ldcache.h"

struct cache_edit {
	uint32_t at;                            /* index in the image's entries; ascending */
	uint32_t removed;                       /* how many entries go, from there on */
	const struct ldcache_library *inserted; /* borrowed; NULL: none */
};

struct cache_edits {
	struct cache_edit *items; /* owned */
	size_t count;
	size_t inserted, removed; /* sums */
};

void cache_edits_clear(struct cache_edits *edits);

/** Works out the edits that add @libraries to @image. Return: 0 or -ENOMEM. */
int cache_edits_make(const struct cache_image *image, const struct ldcache_library *libraries, size_t count,
		     struct cache_edits *ret);
