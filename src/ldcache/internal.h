/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the files of this folder share, a section for each. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/span.h"
#include "base/str.h"
#include "ldcache/ldcache.h"

/* ---- format ---- */

/*
 * The bytes of a loader cache, as glibc's sysdeps/generic/dl-cache.h lays them out. Numbers are in the byte order of
 * the machine. A file is one of
 *
 *	new header, new entries, strings, extension                  (ldconfig -c new; the default since glibc 2.32)
 *	old header, old entries, padding to 8, and then all that     (ldconfig -c compat; the default before)
 *	old header, old entries, strings                             (ldconfig -c old)
 *
 * Offsets of strings count from the start of the new header, in the last case from the end of the entries; those of the
 * extension and its sections count from the start of the file.
 */

#define CACHE_MAGIC_OLD "ld.so-1.7.0"
#define CACHE_MAGIC_NEW "glibc-ld.so.cache1.1"

struct cache_old_header {
	char magic[11];
	uint8_t padding;
	uint32_t count;
};
_Static_assert(sizeof(struct cache_old_header) == 16, "struct cache_file");

struct cache_old_entry {
	int32_t flags;
	uint32_t key, value;
};
_Static_assert(sizeof(struct cache_old_entry) == 12, "struct file_entry");

struct cache_header {
	char magic[20];
	uint32_t count;
	uint32_t strings_size;
	uint8_t flags; /* low two bits: byte order */
	uint8_t padding[3];
	uint32_t extension_offset;
	uint32_t unused[3];
};
_Static_assert(sizeof(struct cache_header) == 48, "struct cache_file_new");

struct cache_entry {
	int32_t flags;       /* kind of library and ABI */
	uint32_t key, value; /* name and path */
	uint32_t osversion;
	uint64_t hwcap; /* with bit 62 set: the low half is an index into the glibc-hwcaps section */
};
_Static_assert(sizeof(struct cache_entry) == 24, "struct file_entry_new");

enum {
	CACHE_ORDER_UNSET = 0,
	CACHE_ORDER_LITTLE = 2,
	CACHE_ORDER_BIG = 3,
	CACHE_ORDER_MASK = 3,
	CACHE_ORDER_HERE = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? CACHE_ORDER_LITTLE : CACHE_ORDER_BIG,
};

#define CACHE_EXTENSION_MAGIC UINT32_C(0xeaa42174)

struct cache_extension {
	uint32_t magic;
	uint32_t count;
};

struct cache_section {
	uint32_t tag;
	uint32_t flags;
	uint32_t offset;
	uint32_t size;
};

/* Loaders skip sections whose tag they do not know, so ours can live among glibc's (cache_extension_load()). */
enum {
	CACHE_SECTION_GENERATOR = 0,
	CACHE_SECTION_HWCAPS = 1,
	CACHE_SECTION_RECORD = 0x67727463, /* "ctrg" */
};

/* What _dl_cache_check_flags() accepts: libc6 and the ABI, from glibc's sysdeps/generic/ldconfig.h. */
#if defined(__x86_64__) && defined(__LP64__)
enum { CACHE_FLAGS_HERE = 0x0303 };
#elif defined(__aarch64__) && defined(__LP64__)
enum { CACHE_FLAGS_HERE = 0x0a03 };
#else
#error "the loader cache's flags of this architecture are not known"
#endif

/* ---- image ---- */

/*
 * A loader cache in memory, in one form whatever the file's was. Everything in it has been checked. The entries of a
 * large image fill many pages, so they stay where they are in the file unless they must change.
 */

struct cache_image {
	const struct cache_entry *entries; /* borrowed from the file, or those below; never NULL */
	struct cache_entry *owned;
	size_t count;
	struct span strings; /* borrowed from the file; every offset is inside, and the last byte is NUL */
	uint32_t base;       /* the offset of the first string */
	uint32_t *hwcaps;    /* owned: names of the glibc-hwcaps directories */
	size_t hwcap_count;
	struct span generator, record; /* borrowed sections; empty if missing */
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
 * cache_image_drop() - drop the entries for files directly in these directories
 *
 * Compares strings for every entry, so it is for rare occasions only. Return: 0 or -ENOMEM.
 */
int cache_image_drop(struct cache_image *image, const struct strv *directories);

/* ---- the order of names ---- */

/*
 * The order of names in a loader cache: as strcmp(), but runs of digits compare as numbers, and a digit comes after
 * anything that is none. "libc.so.10" is thus greater than "libc.so.9", and "libc.so.6" equals "libc.so.06". The loader
 * searches with the same function (_dl_cache_libcmp() in glibc's elf/dl-cache.c), so the two must agree.
 */

/** Return: less than, equal to, or greater than 0, as @a is before, equal to, or behind @b. */
int libcmp(const char *a, const char *b);
