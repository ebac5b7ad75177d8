/* SPDX-License-Identifier: Apache-2.0 */

/* The loader cache of an image, as bytes that may say anything: where its parts are, and a look into it. */

#include "ldcache/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "ldcache/ldcache.h"

/* ---- layout ---- */

/* Where things are in the bytes of a loader cache: found and bounded, nothing copied. */

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

/* The string at an entry's offset. Return: NULL if it is not one. */
static const char *cache_layout_string(const struct cache_layout *layout, uint32_t offset)
{
	uint32_t inside = offset - layout->strings_offset;

	if (offset < layout->strings_offset || inside >= layout->strings.size)
		return NULL;
	return (const char *)layout->strings.data + inside;
}

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

/* Return: false if the loader of this machine would not read it, or should not. */
static bool cache_layout_read(const struct span *file, struct cache_layout *ret)
{
	if (file->size > UINT32_MAX)
		return false;
	if (cache_layout_starts_with(file, CACHE_MAGIC_NEW, sizeof(CACHE_MAGIC_NEW) - 1))
		return cache_layout_read_new(file, 0, ret);
	if (cache_layout_starts_with(file, CACHE_MAGIC_OLD, sizeof(CACHE_MAGIC_OLD) - 1))
		return cache_layout_read_old(file, ret);
	return false;
}

/* ---- image ---- */

void cache_image_clear(struct cache_image *image)
{
	free(image->owned);
	free(image->hwcaps);
	*image = (struct cache_image){0};
}

/* One pass of additions and comparisons of integers; an offset below the base wraps around and is outside too. */
bool cache_image_holds(const struct cache_image *image, const struct cache_entry *entries, size_t count, size_t size)
{
	bool outside = false;

	for (size_t i = 0; i < count; i++) {
		outside |= (uint32_t)(entries[i].key - image->base) >= size;
		outside |= (uint32_t)(entries[i].value - image->base) >= size;
	}
	return !outside;
}

static int cache_image_take_entries(const struct cache_layout *layout, struct cache_image *image)
{
	bool wide = layout->entry_size == sizeof(struct cache_entry);

	image->count = layout->count;
	if (wide && (uintptr_t)layout->entries.data % _Alignof(struct cache_entry) == 0) {
		image->entries = (const struct cache_entry *)(const void *)layout->entries.data;
		return 0;
	}
	image->owned = calloc(layout->count + 1, sizeof(*image->owned));
	if (!image->owned)
		return -ENOMEM;
	image->entries = image->owned;
	for (size_t i = 0; i < layout->count && !wide; i++) {
		struct cache_old_entry old;

		memcpy(&old, layout->entries.data + i * sizeof(old), sizeof(old));
		image->owned[i] = (struct cache_entry){.flags = old.flags, .key = old.key, .value = old.value};
	}
	if (wide)
		memcpy(image->owned, layout->entries.data, layout->entries.size);
	return 0;
}

/* A section with a name outside is left out. The loader then ignores the entries that refer to it. */
static int cache_image_copy_hwcaps(const struct cache_layout *layout, const struct span *section,
				   struct cache_image *image)
{
	_cleanup_free_ uint32_t *hwcaps = NULL;
	size_t count = section->size / sizeof(*hwcaps);

	if (count == 0 || section->size % sizeof(*hwcaps) != 0)
		return 0;
	hwcaps = malloc(section->size);
	if (!hwcaps)
		return -ENOMEM;
	memcpy(hwcaps, section->data, section->size);
	for (size_t i = 0; i < count; i++)
		if (!cache_layout_string(layout, hwcaps[i]))
			return 0;
	free(image->hwcaps);
	image->hwcaps = steal_ptr(hwcaps);
	image->hwcap_count = count;
	return 0;
}

static int cache_image_read_section(const struct cache_layout *layout, const struct cache_section *section,
				    struct cache_image *image)
{
	struct span content;

	if (!span_slice(&layout->file, section->offset, section->size, &content))
		return 0;
	switch (section->tag) {
	case CACHE_SECTION_GENERATOR:
		image->generator = content;
		return 0;
	case CACHE_SECTION_HWCAPS:
		return cache_image_copy_hwcaps(layout, &content, image);
	case CACHE_SECTION_RECORD:
		image->record = content;
		return 0;
	default:
		return 0;
	}
}

/* There are three kinds of section; a directory of thousands is an attempt to keep us busy. */
enum { MAX_SECTIONS = 64 };

static int cache_image_read_extension(const struct cache_layout *layout, struct cache_image *image)
{
	struct cache_extension extension;
	struct span directory;
	int r;

	if (layout->extension_offset == 0 || layout->extension_offset % 4 != 0 ||
	    !span_read(&layout->file, layout->extension_offset, &extension, sizeof(extension)) ||
	    extension.magic != CACHE_EXTENSION_MAGIC || extension.count > MAX_SECTIONS ||
	    !span_slice(&layout->file, layout->extension_offset + sizeof(extension),
			extension.count * sizeof(struct cache_section), &directory))
		return 0;
	for (size_t i = 0; i < extension.count; i++) {
		struct cache_section section;

		if (!span_read(&directory, i * sizeof(section), &section, sizeof(section)))
			return 0;
		r = cache_image_read_section(layout, &section, image);
		if (r < 0)
			return r;
	}
	return 0;
}

/* What an image without a cache has. */
static const struct cache_entry no_entries[1];
static const struct cache_image empty = {.entries = no_entries, .order = CACHE_ORDER_HERE};

int cache_image_read(const struct span *file, struct cache_image *ret)
{
	_cleanup_(cache_image_clear) struct cache_image image = {0};
	struct cache_layout layout;
	int r;

	if (!cache_layout_read(file, &layout)) {
		*ret = empty;
		return 0;
	}
	image.strings = layout.strings;
	image.base = layout.strings_offset;
	image.order = layout.order;
	r = cache_image_take_entries(&layout, &image);
	if (r < 0)
		return r;
	if (!cache_image_holds(&image, image.entries, image.count, image.strings.size)) {
		*ret = empty;
		return 0;
	}
	r = cache_image_read_extension(&layout, &image);
	if (r < 0)
		return r;
	*ret = steal_struct(&image);
	return 0;
}

struct directory {
	const char *path;
	size_t length;
};

static int cache_image_compare_directories(const void *a, const void *b)
{
	const struct directory *left = a, *right = b;
	size_t shorter = left->length < right->length ? left->length : right->length;
	int order = memcmp(left->path, right->path, shorter);

	if (order != 0)
		return order;
	return (left->length > right->length) - (left->length < right->length);
}

static bool cache_image_lists(const char *path, const struct directory *directories, size_t count)
{
	const char *slash = memrchr(path, '/', strnlen(path, PATH_MAX));
	struct directory key;

	if (!slash)
		return false;
	key = (struct directory){.path = path, .length = (size_t)(slash - path)};
	return bsearch(&key, directories, count, sizeof(*directories), cache_image_compare_directories) != NULL;
}

int cache_image_drop(struct cache_image *image, const struct strv *directories)
{
	_cleanup_free_ struct directory *sorted = NULL;
	_cleanup_free_ struct cache_entry *entries = NULL;
	size_t kept = 0;

	sorted = calloc(directories->count + 1, sizeof(*sorted));
	entries = calloc(image->count + 1, sizeof(*entries));
	if (!sorted || !entries)
		return -ENOMEM;
	for (size_t i = 0; i < directories->count; i++)
		sorted[i] = (struct directory){directories->items[i], strlen(directories->items[i])};
	qsort(sorted, directories->count, sizeof(*sorted), cache_image_compare_directories);
	for (size_t i = 0; i < image->count; i++)
		if (!cache_image_lists(cache_image_string(image, image->entries[i].value), sorted, directories->count))
			entries[kept++] = image->entries[i];
	free(image->owned);
	image->owned = steal_ptr(entries);
	image->entries = image->owned;
	image->count = kept;
	return 0;
}

/* ---- the order of names ---- */

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

/* ---- a look into a cache, as the loader does it ---- */

const char *const ldcache_directories[] = {
#if defined(__x86_64__)
	"/lib/x86_64-linux-gnu",
	"/usr/lib/x86_64-linux-gnu",
#elif defined(__aarch64__)
	"/lib/aarch64-linux-gnu",
	"/usr/lib/aarch64-linux-gnu",
#endif
	"/lib64",
	"/usr/lib64",
	"/lib",
	"/usr/lib",
	NULL,
};

/* Entries of the old format have no hardware capabilities. */
static struct cache_entry ldcache_find_entry(const struct cache_layout *layout, size_t index)
{
	struct cache_entry entry = {0};

	(void)span_read(&layout->entries, index * layout->entry_size, &entry, layout->entry_size);
	return entry;
}

/* The first entry whose name is not greater. A name outside counts as less: the search ends somewhere harmless. */
static size_t ldcache_find_search(const struct cache_layout *layout, const char *name)
{
	size_t low = 0, high = layout->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const char *key = cache_layout_string(layout, ldcache_find_entry(layout, middle).key);

		if (!key || libcmp(key, name) <= 0)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

const char *ldcache_find(const struct span *cache, const char *name)
{
	struct cache_layout layout;
	const char *found = NULL;

	if (!cache_layout_read(cache, &layout))
		return NULL;
	for (size_t i = ldcache_find_search(&layout, name); i < layout.count; i++) {
		struct cache_entry entry = ldcache_find_entry(&layout, i);
		const char *key = cache_layout_string(&layout, entry.key);
		const char *path = cache_layout_string(&layout, entry.value);

		if (!key || libcmp(key, name) != 0)
			break;
		if (entry.flags != CACHE_FLAGS_HERE || !path)
			continue;
		/* One that every processor can load, if there is one. */
		if (entry.hwcap == 0)
			return path;
		if (!found)
			found = path;
	}
	return found;
}

int ldcache_find_here(const char *name, char **ret)
{
	_cleanup_free_ char *data = NULL;
	const char *path = NULL;
	size_t size;
	int r;

	r = fd_read_file_at(AT_FDCWD, "/etc/ld.so.cache", LDCACHE_MAX_SIZE, &data, &size);
	if (r == 0)
		path = ldcache_find(&(struct span){(const unsigned char *)data, size}, name);
	*ret = path && path[0] == '/' ? strdup(path) : NULL;
	return r == -ENOMEM || (path && path[0] == '/' && !*ret) ? -ENOMEM : 0;
}

void ldcache_each(const struct span *cache, void (*visit)(void *user, const char *name, const char *path), void *user)
{
	struct cache_layout layout;

	if (!cache_layout_read(cache, &layout))
		return;
	for (size_t i = 0; i < layout.count; i++) {
		struct cache_entry entry = ldcache_find_entry(&layout, i);
		const char *name = cache_layout_string(&layout, entry.key);
		const char *path = cache_layout_string(&layout, entry.value);

		if (name && path)
			visit(user, name, path);
	}
}
