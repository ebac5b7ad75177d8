/* SPDX-License-Identifier: Apache-2.0 */

/* A look into this machine's own cache, as the loader does it. */

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "ldcache/internal.h"
#include "ldcache/ldcache.h"

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
