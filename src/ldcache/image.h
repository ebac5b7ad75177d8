/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A loader cache in memory, in one form whatever the file's was. Everything in it has been checked. The entries of a
 * large image fill many pages, so they stay where they are in the file unless they must change.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/span.h"
#include "base/str.h"
#include "ldcache/format.h"

struct cache_image {
	const struct cache_entry *entries; /* borrowed from the file, or those below; never NULL */
	struct cache_entry *owned;
	size_t count;
	struct span strings; /* borrowed from the file; every offset is inside, and the last byte is NUL */
	uint32_t base;       /* the offset of the first string */
	uint32_t *hwcaps;    /* owned: names of the glibc-hwcaps directories */
	size_t hwcap_count;
	struct span generator, record; /* borrowed sections; empty if there are none */
	uint8_t order; /* CACHE_ORDER_*; a cache that says nothing (0) has a loader that does not look */
};

void cache_image_clear(struct cache_image *image);

/**
 * cache_image_read() - take a cache apart
 * @file: hostile; must outlive the image
 * @ret:  empty if @file is not a cache that the loader would use
 *
 * Return: 0 or -ENOMEM.
 */
int cache_image_read(const struct span *file, struct cache_image *ret);

/** Whether all strings of some entries are within the first @size bytes of the strings. */
bool cache_image_holds(const struct cache_image *image, const struct cache_entry *entries, size_t count, size_t size);

static inline const char *cache_image_string(const struct cache_image *image, uint32_t offset)
{
	return (const char *)image->strings.data + (offset - image->base);
}

/**
 * cache_image_forget() - drop the entries for files directly in these directories
 *
 * Compares strings for every entry, so it is for rare occasions only. Return: 0 or -ENOMEM.
 */
int cache_image_forget(struct cache_image *image, const struct strv *directories);
