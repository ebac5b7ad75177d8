/* SPDX-License-Identifier: Apache-2.0 */

#include "ldcache/internal.h"

/*
 * Leaves out what follows the last string: bytes without a NUL behind them, and the padding in front of an extension.
 * From then on an offset inside is a string that ends inside, at no further cost.
 */
static struct span cache_layout_terminate(struct span strings)
{
	const unsigned char *last = strings.size > 0 ? memrchr(strings.data, '\0', strings.size) : NULL;

	strings.size = last ? (size_t)(last - strings.data) + 1 : 0;
	while (strings.size > 1 && strings.data[strings.size - 2] == '\0')
		strings.size--;
	return strings;
}

static bool cache_layout_take_entries(const struct span *from, size_t header_size, struct cache_layout *layout)
{
	size_t size;

	if (__builtin_mul_overflow(layout->count, layout->entry_size, &size))
		return false;
	return span_slice(from, header_size, size, &layout->entries);
}

static bool cache_layout_read_new(const struct span *file, size_t base, struct cache_layout *ret)
{
	struct cache_layout layout = {.file = *file, .entry_size = sizeof(struct cache_entry)};
	struct cache_header header;
	struct span cache, strings;
	size_t start, end = file->size;

	if (!span_slice(file, base, file->size - base, &cache) || !span_read(&cache, 0, &header, sizeof(header)))
		return false;
	layout.order = header.flags & CACHE_ORDER_MASK;
	if (layout.order != CACHE_ORDER_UNSET && layout.order != CACHE_ORDER_HERE)
		return false;
	layout.count = header.count;
	layout.extension_offset = header.extension_offset;
	if (!cache_layout_take_entries(&cache, sizeof(header), &layout))
		return false;
	start = sizeof(header) + layout.entries.size;
	/* ldconfig puts the extension behind the strings; a cache that has it elsewhere is read to its end. */
	if (layout.extension_offset >= base + start && layout.extension_offset <= end)
		end = layout.extension_offset;
	if (!span_slice(&cache, start, end - base - start, &strings))
		return false;
	layout.strings = cache_layout_terminate(strings);
	layout.strings_offset = (uint32_t)start;
	*ret = layout;
	return true;
}

static bool cache_layout_read_old(const struct span *file, struct cache_layout *ret)
{
	struct cache_layout layout = {.file = *file, .entry_size = sizeof(struct cache_old_entry)};
	struct cache_old_header header;
	struct span strings, magic;
	size_t end, aligned;

	if (!span_read(file, 0, &header, sizeof(header)))
		return false;
	layout.count = header.count;
	if (!cache_layout_take_entries(file, sizeof(header), &layout))
		return false;
	end = sizeof(header) + layout.entries.size;
	aligned = (end + 7) & ~(size_t)7;
	if (span_holds(file, aligned, sizeof(struct cache_header)) &&
	    span_slice(file, aligned, sizeof(CACHE_MAGIC_NEW) - 1, &magic) &&
	    memcmp(magic.data, CACHE_MAGIC_NEW, magic.size) == 0)
		return cache_layout_read_new(file, aligned, ret);
	if (!span_slice(file, end, file->size - end, &strings))
		return false;
	layout.strings = cache_layout_terminate(strings);
	*ret = layout;
	return true;
}

static bool cache_layout_starts_with(const struct span *file, const char *magic, size_t size)
{
	return span_holds(file, 0, size) && memcmp(file->data, magic, size) == 0;
}

bool cache_layout_read(const struct span *file, struct cache_layout *ret)
{
	if (file->size > UINT32_MAX)
		return false;
	if (cache_layout_starts_with(file, CACHE_MAGIC_NEW, sizeof(CACHE_MAGIC_NEW) - 1))
		return cache_layout_read_new(file, 0, ret);
	if (cache_layout_starts_with(file, CACHE_MAGIC_OLD, sizeof(CACHE_MAGIC_OLD) - 1))
		return cache_layout_read_old(file, ret);
	return false;
}
