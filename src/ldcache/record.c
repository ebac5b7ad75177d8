/* SPDX-License-Identifier: Apache-2.0 */

#include "ldcache/internal.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

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

size_t cache_record_size(const struct cache_edits *edits)
{
	return cache_record_size_of(edits->count, edits->removed);
}

void cache_record_write(const struct cache_image *image, const struct cache_edits *edits, unsigned char *to)
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

int cache_record_undo(struct cache_image *image)
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
