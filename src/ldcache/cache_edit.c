/* SPDX-License-Identifier: Apache-2.0 */

#include "ldcache/internal.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "ldcache/ldcache.h"

/* No number in a real name is longer. Bounds what a hostile name of a million digits costs. */
enum { MAX_DIGITS = 64 };

static bool libcmp_is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* glibc computes in int, where a long number wraps around in practice; unsigned does so by definition. */
static int32_t libcmp_read_number(const char **text)
{
	const char *next = *text;
	uint32_t value = 0;

	for (int i = 0; i < MAX_DIGITS && libcmp_is_digit(*next); i++)
		value = value * 10 + (uint32_t)(*next++ - '0');
	*text = next;
	return (int32_t)value;
}

int libcmp(const char *a, const char *b)
{
	while (*a) {
		if (libcmp_is_digit(*a) && libcmp_is_digit(*b)) {
			int32_t left = libcmp_read_number(&a), right = libcmp_read_number(&b);

			if (left != right)
				return left > right ? 1 : -1;
		} else if (libcmp_is_digit(*a)) {
			return 1;
		} else if (libcmp_is_digit(*b)) {
			return -1;
		} else if (*a != *b) {
			return *a - *b;
		} else {
			a++;
			b++;
		}
	}
	return *a - *b;
}

static void cache_edits_clear(struct cache_edits *edits)
{
	free(edits->items);
	*edits = (struct cache_edits){0};
}

typedef const struct ldcache_library *library_ref;

/* Descending like the cache; of equal names the one given first stays first. */
static int cache_edit_compare_libraries(const void *a, const void *b)
{
	library_ref left = *(const library_ref *)a, right = *(const library_ref *)b;
	int order = libcmp(right->name, left->name);

	return order != 0 ? order : (left > right) - (left < right);
}

/* The first entry, from @low on, whose name is less than @name, or with @or_equal not greater. */
static size_t cache_edit_search(const struct cache_image *image, size_t low, const char *name, bool or_equal)
{
	size_t high = image->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = libcmp(cache_image_string(image, image->entries[middle].key), name);

		if (order < 0 || (or_equal && order == 0))
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

static int cache_edit_add(struct cache_edits *edits, size_t at, size_t removed, library_ref inserted)
{
	struct cache_edit *items = array_grow(edits->items, edits->count, sizeof(*items));

	if (!items)
		return -ENOMEM;
	edits->items = items;
	items[edits->count++] = (struct cache_edit){(uint32_t)at, (uint32_t)removed, inserted};
	edits->removed += removed;
	edits->inserted += inserted ? 1 : 0;
	return 0;
}

/* Takes out, from @from to @end, every run of entries of our ABI; @inserted goes where the first one was. */
static int cache_edit_replace(const struct cache_image *image, size_t from, size_t end, library_ref inserted,
			      struct cache_edits *edits)
{
	int r = 0;

	while (from < end && r == 0) {
		size_t next = from;

		while (next < end && image->entries[next].flags == CACHE_FLAGS_HERE)
			next++;
		if (next == from && !inserted) {
			from++;
			continue;
		}
		r = cache_edit_add(edits, from, next - from, inserted);
		inserted = NULL;
		from = next;
	}
	return r;
}

/* Entries with one name are sorted by ABI, descending, and then by hardware capability. */
static int cache_edit_name(const struct cache_image *image, size_t low, size_t high, library_ref library,
			   struct cache_edits *edits)
{
	size_t at = low;

	while (at < high && image->entries[at].flags > CACHE_FLAGS_HERE)
		at++;
	if (at == high)
		return cache_edit_add(edits, at, 0, library);
	if (!library->overrides)
		for (size_t i = at; i < high; i++)
			if (image->entries[i].flags == CACHE_FLAGS_HERE)
				return 0;
	return cache_edit_replace(image, at, high, library, edits);
}

/* Works out the edits that add @libraries to @image. Return: 0 or -ENOMEM. */
static int cache_edits_make(const struct cache_image *image, const struct ldcache_library *libraries, size_t count,
			    struct cache_edits *ret)
{
	_cleanup_(cache_edits_clear) struct cache_edits edits = {0};
	_cleanup_free_ library_ref *sorted = calloc(count + 1, sizeof(*sorted));
	size_t low, high = 0;
	int r;

	if (!sorted)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		sorted[i] = &libraries[i];
	qsort(sorted, count, sizeof(*sorted), cache_edit_compare_libraries);
	for (size_t i = 0; i < count; i++) {
		/* Of equal names the first counts. */
		if (i > 0 && libcmp(sorted[i - 1]->name, sorted[i]->name) == 0)
			continue;
		/* Never before the last edit: an image whose entries are not sorted must not make edits overlap. */
		low = cache_edit_search(image, high, sorted[i]->name, true);
		high = cache_edit_search(image, low, sorted[i]->name, false);
		r = cache_edit_name(image, low, high, sorted[i], &edits);
		if (r < 0)
			return r;
	}
	*ret = steal_struct(&edits);
	return 0;
}

/*
 * Read, take back what an earlier merge did, add, write. The image's entries are copied and their offsets shifted;
 * names are compared only where a binary search with one of ours looks.
 */

int ldcache_merge(const struct span *old, const struct strv *former, const struct ldcache_library *libraries,
		  size_t count, struct ldcache_merged *ret)
{
	_cleanup_(cache_image_clear) struct cache_image image = {0};
	_cleanup_(cache_edits_clear) struct cache_edits edits = {0};
	int r;

	r = cache_image_read(old, &image);
	if (r < 0)
		return r;
	r = cache_record_undo(&image);
	if (r == 0 && former && former->count > 0)
		r = cache_image_drop(&image, former);
	if (r < 0)
		return r;
	r = cache_edits_make(&image, libraries, count, &edits);
	if (r < 0)
		return r;
	return cache_write(&image, &edits, ret);
}
