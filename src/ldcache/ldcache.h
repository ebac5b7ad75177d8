/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * /etc/ld.so.cache: bytes in, bytes out. No path is opened here.
 *
 * Facts: glibc sysdeps/generic/dl-cache.h and elf/cache.c. The new format ("glibc-ld.so.cache1.1") is read alone or
 * behind the old one ("ld.so-1.7.0", glibc before 2.32 by default), and so is the old one alone. What is written is
 * always the new format alone, which every glibc since 2.2 accepts. Entries are sorted by _dl_cache_libcmp(),
 * descending.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/span.h"
#include "base/str.h"

enum {
	LDCACHE_MAX_SIZE = 16 * 1024 * 1024, /* of an image's cache that is still read */
};

/* A library that the loader must find. */
struct ldcache_library {
	const char *name; /* what is looked up, "libcuda.so.1" */
	const char *path; /* where it is, "/usr/lib/wsl/lib/libcuda.so.1" */
	bool overrides;   /* goes before and drops entries of the same name and ABI in the image; else fills a gap */
};

enum { LDCACHE_PARTS = 3 };

/* A cache to be written, one part behind the other. The image's strings are most of it and stay where they are. */
struct ldcache_merged {
	struct span parts[LDCACHE_PARTS]; /* header and entries; strings, in the old cache; the rest */
	void *owned;                      /* where the first and the last are */
};

/**
 * ldcache_merge() - a cache with libraries added
 * @old:       the image's cache; an empty span for an image without one; hostile; must outlive the new one
 * @former:    directories that an ldconfig run in the container may have found through our drop-in; NULL if there was
 *             none
 * @libraries: what to add, in order of precedence: of two with one name the first counts; borrowed. None: @old without
 *             what an earlier merge did to it
 * @ret:       the new cache; the caller frees what it owns
 *
 * The result carries a record of what was added and dropped, in an extension section that loaders skip. A merge into it
 * first takes the earlier one back, so merging the same libraries again gives the same bytes, and nothing stays of a
 * driver that the host no longer has. If @old has no record although we were here before, ldconfig rewrote it since:
 * then, and only then, every entry is looked at and those for files in @former go.
 *
 * Otherwise the cost beyond copying does not depend on how many entries @old has. Something that is not a loader cache,
 * or has a string outside itself, counts as empty.
 *
 * Return: 0; -ENOMEM; -E2BIG if the result would be larger than LDCACHE_MAX_SIZE.
 */
int ldcache_merge(const struct span *old, const struct strv *former, const struct ldcache_library *libraries,
		  size_t count, struct ldcache_merged *ret);

/*
 * Where the loader looks for what is in no cache, with NULL at the end: glibc's (elf/dl-load.c), with the
 * subdirectories of the distributions.
 */
extern const char *const ldcache_directories[];

/**
 * ldcache_find() - the path of a library of this machine's ABI
 * @cache: hostile
 *
 * Return: the path, inside @cache; NULL if there is none.
 */
const char *ldcache_find(const struct span *cache, const char *name);

/**
 * ldcache_find_here() - the absolute path of a library in this machine's own cache
 * @ret: owned by the caller; NULL if there is none, or no cache that can be read
 *
 * Return: 0 or -ENOMEM.
 */
int ldcache_find_here(const char *name, char **ret);

/**
 * ldcache_each() - every library of a cache, of any ABI, in the cache's order
 * @cache: hostile
 * @visit: called with strings inside @cache
 */
void ldcache_each(const struct span *cache, void (*visit)(void *user, const char *name, const char *path), void *user);

/**
 * ldcache_musl_path() - the content of /etc/ld-musl-<arch>.path with directories added
 * @old:    the image's file; NULL if it has none (musl then searches /lib:/usr/local/lib:/usr/lib, which are kept)
 * @front:  searched before the image's; may be NULL
 * @behind: searched after them, left out where the image lists them already; may be NULL
 *
 * What an earlier call added to @old is replaced. Return: 0 or -ENOMEM.
 */
int ldcache_musl_path(const char *old, const struct strv *front, const struct strv *behind, char **ret);
