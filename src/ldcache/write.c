/* SPDX-License-Identifier: Apache-2.0 */

#include "ldcache/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"

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

int cache_write(const struct cache_image *image, const struct cache_edits *edits, struct ldcache_merged *ret)
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
