/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A merge into a loader cache: what becomes of the image's entries, and the record by which the next merge knows ours.
 */

#include "ldcache/internal.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "ldcache/ldcache.h"

/*
 * What a merge does to the image's entries: a short list of places where some are taken out and one of ours is put in.
 * It is as long as the list of our libraries, however many the image has.
 */

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

/* ---- the record ---- */

/*
 * How a merge can be taken back. A cache that we wrote has a section of its own. It says how long the image's strings
 * were, where our entries are, and what entries of the image were taken out. From it the next start, perhaps with
 * another driver, restores the image's own cache exactly: nothing of the old driver stays, nothing that it shadowed is
 * lost, and nothing grows. An ldconfig run in the container writes a cache without the section.
 *
 * The section comes from the image and is as hostile as the rest; it is used if all of it makes sense.
 */

enum { RECORD_VERSION = 1 };

/* The section: this, then the edits, then the entries that were taken out, whose strings count from the first one. */
struct record_header {
	uint32_t version;
	uint32_t strings_size;
	uint32_t edits;
	uint32_t removed;
};

struct record_edit {
	uint32_t at, removed, inserted;
};

static size_t cache_record_size_of(size_t edits, size_t removed)
{
	return sizeof(struct record_header) + edits * sizeof(struct record_edit) + removed * sizeof(struct cache_entry);
}

/* Return: the bytes that cache_record_write() takes. */
static size_t cache_record_size(const struct cache_edits *edits)
{
	return cache_record_size_of(edits->count, edits->removed);
}

static void cache_record_write(const struct cache_image *image, const struct cache_edits *edits, unsigned char *to)
{
	struct record_header header = {
		.version = RECORD_VERSION,
		.strings_size = (uint32_t)image->strings.size,
		.edits = (uint32_t)edits->count,
		.removed = (uint32_t)edits->removed,
	};

	to = mempcpy(to, &header, sizeof(header));
	for (size_t i = 0; i < edits->count; i++) {
		const struct cache_edit *edit = &edits->items[i];
		struct record_edit record = {edit->at, edit->removed, edit->inserted ? 1 : 0};

		to = mempcpy(to, &record, sizeof(record));
	}
	for (size_t i = 0; i < edits->count; i++)
		for (size_t j = 0; j < edits->items[i].removed; j++) {
			struct cache_entry entry = image->entries[edits->items[i].at + j];

			entry.key -= image->base;
			entry.value -= image->base;
			to = mempcpy(to, &entry, sizeof(entry));
		}
}

static bool cache_record_read_header(const struct cache_image *image, struct record_header *ret)
{
	struct record_header header;

	if (!span_read(&image->record, 0, &header, sizeof(header)) || header.version != RECORD_VERSION)
		return false;
	if (header.strings_size > image->strings.size)
		return false;
	if (header.strings_size > 0 && image->strings.data[header.strings_size - 1] != '\0')
		return false;
	if (image->record.size != cache_record_size_of(header.edits, header.removed))
		return false;
	*ret = header;
	return true;
}

/* Where the replay stands: in the merged entries, in the entries of the section, in the result. */
struct replay {
	const struct cache_image *image;
	struct span removed;
	struct cache_entry *entries; /* with room for all merged and all removed ones */
	size_t taken, restored, count;
};

static bool cache_record_replay_edit(struct replay *replay, const struct record_edit *edit)
{
	size_t gap, left = replay->image->count - replay->taken;
	struct cache_entry *to;

	if (edit->at < replay->count || edit->inserted > 1)
		return false;
	gap = edit->at - replay->count;
	if (gap > left || edit->inserted > left - gap)
		return false;
	memcpy(replay->entries + replay->count, replay->image->entries + replay->taken, gap * sizeof(*replay->entries));
	to = replay->entries + edit->at;
	if (!span_read(&replay->removed, replay->restored * sizeof(*to), to, edit->removed * sizeof(*to)))
		return false;
	for (size_t i = 0; i < edit->removed; i++) {
		to[i].key += replay->image->base;
		to[i].value += replay->image->base;
	}
	replay->restored += edit->removed;
	replay->taken += gap + edit->inserted;
	replay->count = (size_t)edit->at + edit->removed;
	return true;
}

static bool cache_record_replay_all(struct replay *replay, const struct record_header *header)
{
	size_t rest;

	for (size_t i = 0; i < header->edits; i++) {
		struct record_edit edit;

		if (!span_read(&replay->image->record, sizeof(*header) + i * sizeof(edit), &edit, sizeof(edit)) ||
		    !cache_record_replay_edit(replay, &edit))
			return false;
	}
	if (replay->restored != header->removed)
		return false;
	rest = replay->image->count - replay->taken;
	memcpy(replay->entries + replay->count, replay->image->entries + replay->taken,
	       rest * sizeof(*replay->entries));
	replay->count += rest;
	return cache_image_holds(replay->image, replay->entries, replay->count, header->strings_size);
}

/*
 * Turn a merged cache back into the image's own
 *
 * Return: 1; 0, with @image as it was, if it has no record or an invalid one; -ENOMEM.
 */
static int cache_record_undo(struct cache_image *image)
{
	_cleanup_free_ struct cache_entry *entries = NULL;
	struct replay replay = {.image = image};
	struct record_header header;

	if (!cache_record_read_header(image, &header) ||
	    !span_slice(&image->record, cache_record_size_of(header.edits, 0), header.removed * sizeof(*entries),
			&replay.removed))
		return 0;
	for (size_t i = 0; i < image->hwcap_count; i++)
		if ((uint32_t)(image->hwcaps[i] - image->base) >= header.strings_size)
			return 0;
	entries = calloc(image->count + header.removed + 1, sizeof(*entries));
	if (!entries)
		return -ENOMEM;
	replay.entries = entries;
	if (!cache_record_replay_all(&replay, &header))
		return 0;
	free(image->owned);
	image->owned = steal_ptr(entries);
	image->entries = image->owned;
	image->count = replay.count;
	image->strings.size = header.strings_size;
	return 1;
}

/* ---- the bytes ---- */

/* A loader cache as bytes, in the new format. The strings of the image are not copied. */

enum { MAX_SECTIONS = 3 };

/*
 * Where in the file everything goes. Behind the entries: the image's strings, ours, the extension and its sections. In
 * memory the image's strings stay where they are; what is in front of them and behind them is in one piece.
 */
struct cache_plan {
	size_t count;
	size_t strings, own_strings, strings_end;
	size_t extension;
	struct cache_section sections[MAX_SECTIONS];
	uint32_t section_count;
	size_t size;
};

/* The name is most often the end of the path; then it needs no string of its own, as in ldconfig's tables. */
static bool cache_write_name_ends_path(const struct ldcache_library *library)
{
	size_t name = strlen(library->name), path = strlen(library->path);

	return name <= path && streq(library->path + path - name, library->name);
}

static int cache_write_plan(const struct cache_image *image, const struct cache_edits *edits, struct cache_plan *ret)
{
	/* In this order the sections whose sizes are multiples of four come first, so all that need it are aligned. */
	const struct cache_section sections[MAX_SECTIONS] = {
		{.tag = CACHE_SECTION_HWCAPS, .size = (uint32_t)(image->hwcap_count * sizeof(*image->hwcaps))},
		{.tag = CACHE_SECTION_RECORD, .size = edits->count > 0 ? (uint32_t)cache_record_size(edits) : 0},
		{.tag = CACHE_SECTION_GENERATOR, .size = (uint32_t)image->generator.size},
	};
	struct cache_plan plan = {.count = image->count + edits->inserted - edits->removed};

	plan.strings = sizeof(struct cache_header) + plan.count * sizeof(struct cache_entry);
	plan.own_strings = plan.strings + image->strings.size;
	plan.strings_end = plan.own_strings;
	for (size_t i = 0; i < edits->count; i++) {
		const struct ldcache_library *library = edits->items[i].inserted;

		if (library)
			plan.strings_end += strlen(library->path) + 1 +
					    (cache_write_name_ends_path(library) ? 0 : strlen(library->name) + 1);
	}
	plan.extension = (plan.strings_end + 3) & ~(size_t)3;
	for (size_t i = 0; i < MAX_SECTIONS; i++)
		if (sections[i].size > 0)
			plan.sections[plan.section_count++] = sections[i];
	plan.size = plan.extension + sizeof(struct cache_extension) + plan.section_count * sizeof(struct cache_section);
	for (size_t i = 0; i < plan.section_count; i++) {
		plan.sections[i].offset = (uint32_t)plan.size;
		plan.size += plan.sections[i].size;
	}
	/* What the next start would refuse to read. */
	if (plan.size > LDCACHE_MAX_SIZE)
		return -E2BIG;
	*ret = plan;
	return 0;
}

/* Where in memory something behind the image's strings goes. */
static unsigned char *cache_write_end(unsigned char *data, const struct cache_plan *plan, size_t offset)
{
	return data + plan->strings + (offset - plan->own_strings);
}

/* Where the next entry and the next string of ours go. */
struct cursor {
	struct cache_entry *entry;
	unsigned char *text;
	size_t string; /* the same in the file */
};

static void cache_write_string(struct cursor *cursor, const char *string, size_t size)
{
	cursor->text = mempcpy(cursor->text, string, size);
	cursor->string += size;
}

static void cache_write_image_entries(struct cursor *cursor, const struct cache_entry *from, size_t count,
				      uint32_t offset)
{
	for (size_t i = 0; i < count; i++) {
		cursor->entry[i] = from[i];
		cursor->entry[i].key += offset;
		cursor->entry[i].value += offset;
	}
	cursor->entry += count;
}

static void cache_write_library(struct cursor *cursor, const struct ldcache_library *library)
{
	size_t path = strlen(library->path) + 1, name = strlen(library->name) + 1;
	struct cache_entry entry = {.flags = CACHE_FLAGS_HERE, .value = (uint32_t)cursor->string};

	cache_write_string(cursor, library->path, path);
	if (cache_write_name_ends_path(library)) {
		entry.key = (uint32_t)(cursor->string - name);
	} else {
		entry.key = (uint32_t)cursor->string;
		cache_write_string(cursor, library->name, name);
	}
	*cursor->entry++ = entry;
}

static void cache_write_entries(const struct cache_image *image, const struct cache_edits *edits,
				const struct cache_plan *plan, unsigned char *data)
{
	struct cursor cursor = {
		.entry = (struct cache_entry *)(void *)(data + sizeof(struct cache_header)),
		.text = cache_write_end(data, plan, plan->own_strings),
		.string = plan->own_strings,
	};
	uint32_t offset = (uint32_t)plan->strings - image->base;
	size_t next = 0;

	for (size_t i = 0; i < edits->count; i++) {
		const struct cache_edit *edit = &edits->items[i];

		cache_write_image_entries(&cursor, image->entries + next, edit->at - next, offset);
		if (edit->inserted)
			cache_write_library(&cursor, edit->inserted);
		next = (size_t)edit->at + edit->removed;
	}
	if (next < image->count)
		cache_write_image_entries(&cursor, image->entries + next, image->count - next, offset);
}

static void cache_write_extension(const struct cache_image *image, const struct cache_edits *edits,
				  const struct cache_plan *plan, unsigned char *data)
{
	struct cache_extension extension = {.magic = CACHE_EXTENSION_MAGIC, .count = plan->section_count};

	memcpy(mempcpy(cache_write_end(data, plan, plan->extension), &extension, sizeof(extension)), plan->sections,
	       plan->section_count * sizeof(plan->sections[0]));
	for (size_t i = 0; i < plan->section_count; i++) {
		unsigned char *to = cache_write_end(data, plan, plan->sections[i].offset);

		for (size_t j = 0; j < image->hwcap_count && plan->sections[i].tag == CACHE_SECTION_HWCAPS; j++) {
			uint32_t offset = image->hwcaps[j] - image->base + (uint32_t)plan->strings;

			to = mempcpy(to, &offset, sizeof(offset));
		}
		if (plan->sections[i].tag == CACHE_SECTION_RECORD)
			cache_record_write(image, edits, to);
		else if (plan->sections[i].tag == CACHE_SECTION_GENERATOR)
			memcpy(to, image->generator.data, image->generator.size);
	}
}

/* Writes @image with @edits done to it. Return: 0; -ENOMEM; -E2BIG. */
static int cache_write(const struct cache_image *image, const struct cache_edits *edits, struct ldcache_merged *ret)
{
	struct cache_header header = {.flags = image->order};
	struct cache_plan plan;
	unsigned char *data;
	int r;

	r = cache_write_plan(image, edits, &plan);
	if (r < 0)
		return r;
	data = buffer_new(plan.size - image->strings.size);
	if (!data)
		return -ENOMEM;
	memcpy(header.magic, CACHE_MAGIC_NEW, sizeof(header.magic));
	header.count = (uint32_t)plan.count;
	header.strings_size = (uint32_t)(plan.strings_end - plan.strings);
	header.extension_offset = (uint32_t)plan.extension;
	memcpy(data, &header, sizeof(header));
	cache_write_entries(image, edits, &plan, data);
	memset(cache_write_end(data, &plan, plan.strings_end), 0, plan.extension - plan.strings_end);
	cache_write_extension(image, edits, &plan, data);
	*ret = (struct ldcache_merged){
		.parts = {{data, plan.strings}, image->strings, {data + plan.strings, plan.size - plan.own_strings}},
		.owned = data,
	};
	return 0;
}

/* ---- a merge ---- */

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
