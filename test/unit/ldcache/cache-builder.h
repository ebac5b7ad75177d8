/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Loader caches for tests, laid out as ldconfig lays them out, written without the code under test; and a reader that
 * searches them as the loader does.
 */

/* Its assertions are a test's, so they hold in every build. */
#undef NDEBUG
#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/span.h"

enum { ABI_I386 = 0x0003, ABI_X32 = 0x0803 };
#ifdef __x86_64__
enum { ABI_HERE = 0x0303 };
#else
enum { ABI_HERE = 0x0a03 };
#endif

#define HWCAP_NAMED(index) (UINT64_C(1) << 62 | (index))

enum cache_format {
	FORMAT_NEW,
	FORMAT_COMPAT,
	FORMAT_OLD,
};

struct built_entry {
	const char *name, *path;
	int flags;
	uint64_t hwcap;
};

struct built_cache {
	unsigned char *data;
	size_t size;
};

static inline void put(struct built_cache *cache, const void *bytes, size_t size)
{
	cache->data = realloc(cache->data, cache->size + size + 1);
	assert(cache->data);
	if (size > 0)
		memcpy(cache->data + cache->size, bytes, size);
	cache->size += size;
}

static inline void put32(struct built_cache *cache, uint32_t number)
{
	put(cache, &number, sizeof(number));
}

static inline uint32_t get32(const unsigned char *data, size_t offset)
{
	uint32_t number;

	memcpy(&number, data + offset, sizeof(number));
	return number;
}

static inline void pad_to(struct built_cache *cache, size_t alignment)
{
	while (cache->size % alignment != 0)
		put(cache, "", 1);
}

static inline void put_strings(struct built_cache *cache, const struct built_entry *entries, size_t count,
			       const char *const *hwcaps, size_t hwcap_count)
{
	for (size_t i = 0; i < count; i++) {
		put(cache, entries[i].name, strlen(entries[i].name) + 1);
		put(cache, entries[i].path, strlen(entries[i].path) + 1);
	}
	for (size_t i = 0; i < hwcap_count; i++)
		put(cache, hwcaps[i], strlen(hwcaps[i]) + 1);
}

static inline void put_old(struct built_cache *cache, const struct built_entry *entries, size_t count, uint32_t offset)
{
	put(cache, "ld.so-1.7.0", 12);
	put32(cache, (uint32_t)count);
	for (size_t i = 0; i < count; i++) {
		put32(cache, (uint32_t)entries[i].flags);
		put32(cache, offset);
		offset += (uint32_t)strlen(entries[i].name) + 1;
		put32(cache, offset);
		offset += (uint32_t)strlen(entries[i].path) + 1;
	}
}

/* The offset of the first hwcap name, as entries count. */
static inline uint32_t put_new_entries(struct built_cache *cache, const struct built_entry *entries, size_t count)
{
	uint32_t offset = (uint32_t)(48 + 24 * count);

	for (size_t i = 0; i < count; i++) {
		put32(cache, (uint32_t)entries[i].flags);
		put32(cache, offset);
		offset += (uint32_t)strlen(entries[i].name) + 1;
		put32(cache, offset);
		offset += (uint32_t)strlen(entries[i].path) + 1;
		put32(cache, 0);
		put(cache, &entries[i].hwcap, sizeof(entries[i].hwcap));
	}
	return offset;
}

static inline void put_extension(struct built_cache *cache, uint32_t offset, const char *const *hwcaps,
				 size_t hwcap_count)
{
	static const char generator[] = "ldconfig of a test";
	uint32_t sections = (uint32_t)cache->size + 8 + 2 * 16;

	put32(cache, 0xeaa42174);
	put32(cache, 2);
	put32(cache, 0);
	put32(cache, 0);
	put32(cache, sections + 4 * (uint32_t)hwcap_count);
	put32(cache, sizeof(generator) - 1);
	put32(cache, 1);
	put32(cache, 0);
	put32(cache, sections);
	put32(cache, 4 * (uint32_t)hwcap_count);
	for (size_t i = 0; i < hwcap_count; i++) {
		put32(cache, offset);
		offset += (uint32_t)strlen(hwcaps[i]) + 1;
	}
	put(cache, generator, sizeof(generator) - 1);
}

/* @entries are in the order of the cache. @hwcaps: names of glibc-hwcaps directories; the extension is there if any are. */
static inline struct built_cache build_cache(enum cache_format format, const struct built_entry *entries, size_t count,
					     const char *const *hwcaps, size_t hwcap_count)
{
	struct built_cache cache = {0};
	size_t base, strings;
	uint32_t names, length;

	if (format == FORMAT_OLD) {
		put_old(&cache, entries, count, 0);
		put_strings(&cache, entries, count, NULL, 0);
		return cache;
	}
	if (format == FORMAT_COMPAT) {
		size_t end = 16 + 12 * count, padding = (8 - end % 8) % 8;

		put_old(&cache, entries, count, (uint32_t)(padding + 48 + 24 * count));
		pad_to(&cache, 8);
	}
	base = cache.size;
	put(&cache, "glibc-ld.so.cache1.1", 20);
	put32(&cache, (uint32_t)count);
	put32(&cache, 0);
	put32(&cache, 2);
	put(&cache, (char[16]){0}, 16);
	names = put_new_entries(&cache, entries, count);
	strings = cache.size;
	put_strings(&cache, entries, count, hwcaps, hwcap_count);
	length = (uint32_t)(cache.size - strings);
	memcpy(cache.data + base + 24, &length, sizeof(length));
	if (hwcap_count > 0) {
		uint32_t extension;

		pad_to(&cache, 4);
		extension = (uint32_t)cache.size;
		memcpy(cache.data + base + 32, &extension, sizeof(extension));
		put_extension(&cache, names, hwcaps, hwcap_count);
	}
	return cache;
}

/* ---- a reader of what ldcache_merge() wrote: the new format alone, every offset asserted ---- */

/* Parts as the file that they make. */
static inline struct built_cache join_parts(const struct span *parts, size_t count)
{
	struct built_cache joined = {0};

	for (size_t i = 0; i < count; i++)
		joined.size += parts[i].size;
	joined.data = malloc(joined.size + 1);
	assert(joined.data);
	joined.size = 0;
	for (size_t i = 0; i < count; i++) {
		if (parts[i].size > 0)
			memcpy(joined.data + joined.size, parts[i].data, parts[i].size);
		joined.size += parts[i].size;
	}
	return joined;
}

struct read_entry {
	const char *name, *path;
	int flags;
	uint64_t hwcap;
};

static inline const char *read_string(const unsigned char *data, size_t size, uint32_t offset)
{
	assert(offset >= 48 && offset < size);
	assert(memchr(data + offset, '\0', size - offset));
	return (const char *)data + offset;
}

static inline size_t read_count(const unsigned char *data, size_t size)
{
	size_t count;

	assert(size >= 48 && memcmp(data, "glibc-ld.so.cache1.1", 20) == 0);
	count = get32(data, 20);
	assert(48 + count * 24 + get32(data, 24) <= size);
	return count;
}

static inline struct read_entry read_at(const unsigned char *data, size_t size, size_t index)
{
	const unsigned char *at = data + 48 + 24 * index;
	struct read_entry entry;

	assert(index < read_count(data, size));
	entry.flags = (int)get32(at, 0);
	entry.name = read_string(data, size, get32(at, 4));
	entry.path = read_string(data, size, get32(at, 8));
	memcpy(&entry.hwcap, at + 16, sizeof(entry.hwcap));
	return entry;
}

/* A section of the extension. Return: its size; 0 if it is missing. */
static inline size_t read_section(const unsigned char *data, size_t size, uint32_t tag, const unsigned char **ret)
{
	uint32_t extension = get32(data, 32);

	if (extension == 0)
		return 0;
	assert(extension % 4 == 0 && extension + 8 <= size && get32(data, extension) == 0xeaa42174);
	assert(extension + 8 + 16 * (size_t)get32(data, extension + 4) <= size);
	for (size_t i = 0; i < get32(data, extension + 4); i++) {
		const unsigned char *section = data + extension + 8 + 16 * i;

		assert((size_t)get32(section, 8) + get32(section, 12) <= size);
		if (get32(section, 0) != tag)
			continue;
		*ret = data + get32(section, 8);
		return get32(section, 12);
	}
	return 0;
}

/* The name of the glibc-hwcaps directory that an entry is for; NULL if the loader would skip it. */
static inline const char *read_hwcap(const unsigned char *data, size_t size, uint64_t hwcap)
{
	const unsigned char *names = NULL;
	size_t length = read_section(data, size, 1, &names);

	if ((uint32_t)hwcap >= length / 4)
		return NULL;
	assert((size_t)(names - data) % 4 == 0);
	return read_string(data, size, get32(names, 4 * (uint32_t)hwcap));
}
