/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Loader caches of images, as bytes from anywhere. Beyond not crashing: every offset in the result is inside it, a merge into
 * what a merge wrote changes nothing, and a merge of nothing into it gives what the image had.
 *
 * Random bytes hardly ever pass for a cache, so inputs are grown from real ones: the mutator begins, now and then, with a
 * cache that is built anew.
 */

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../unit/ldcache/cache-builder.h"
#include "base/cleanup.h"
#include "ldcache/ldcache.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);

static const struct ldcache_library libraries[] = {
	{"libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1", true},
	{"libdxcore.so", "/usr/lib/wsl/lib/libdxcore.so", true},
	{"libLLVM.so.15", "/usr/lib/wsl/drivers/intel/libLLVM.so.15", false},
	{"libfast.so.1", "/usr/lib/wsl/lib/libfast.so.1.5", true},
};

static void require(bool condition)
{
	if (!condition)
		abort();
}

static void merge(const void *data, size_t size, const struct strv *former, size_t count, struct built_cache *ret)
{
	struct span old = {data, size};
	struct ldcache_merged merged;

	require(ldcache_merge(&old, former, libraries, count, &merged) == 0);
	*ret = join_parts(merged.parts, ARRAY_SIZE(merged.parts));
	free(merged.owned);
}

static void check_offsets(const struct built_cache *cache)
{
	const unsigned char *hwcaps = NULL;
	size_t count = read_count(cache->data, cache->size);

	for (size_t i = 0; i < count; i++)
		(void)read_at(cache->data, cache->size, i);
	for (size_t i = 0, length = read_section(cache->data, cache->size, 1, &hwcaps); i < length / 4; i++)
		require(read_hwcap(cache->data, cache->size, i) != NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *directories[] = {(char[]){"/lib"}, (char[]){"/baked"}};
	struct strv former = {directories, 2};
	struct built_cache merged = {0}, again = {0}, forgotten = {0}, undone = {0}, never = {0};
	struct span span = {data, size};
	char *text = strndup((const char *)data, size), *path = NULL;

	merge(data, size, NULL, ARRAY_SIZE(libraries), &merged);
	check_offsets(&merged);
	merge(merged.data, merged.size, NULL, ARRAY_SIZE(libraries), &again);
	require(merged.size == again.size && memcmp(merged.data, again.data, merged.size) == 0);
	merge(merged.data, merged.size, NULL, 0, &undone);
	merge(data, size, NULL, 0, &never);
	require(undone.size == never.size && memcmp(undone.data, never.data, never.size) == 0);
	merge(data, size, &former, ARRAY_SIZE(libraries), &forgotten);
	check_offsets(&forgotten);
	for (size_t i = 0; i < ARRAY_SIZE(libraries); i++) {
		const char *found = ldcache_find(&span, libraries[i].name);

		require(!found || ((const uint8_t *)found >= data && (const uint8_t *)found < data + size));
	}
	require(text && ldcache_musl_path(text, &former, &former, &path) >= 0);
	free(path);
	free(text);
	free(merged.data);
	free(again.data);
	free(forgotten.data);
	free(undone.data);
	free(never.data);
	return 0;
}

/* ---- seeds ---- */

static const struct built_entry entries[] = {
	{"libz.so.1", "/lib/libz.so.1", ABI_HERE, 0},
	{"libfast.so.1", "/lib/v3/libfast.so.1", ABI_HERE, HWCAP_NAMED(0)},
	{"libfast.so.1", "/lib/libfast.so.1", ABI_HERE, 0},
	{"libcuda.so.1", "/baked/libcuda.so.1", ABI_HERE, 0},
	{"libcuda.so.1", "/baked/libcuda.so.1", ABI_I386, 0},
	{"libc.so.6", "/lib/libc.so.6", ABI_HERE, 0},
};
static const char *const hwcaps[] = {"x86-64-v3"};

static struct built_cache build_seed(unsigned seed)
{
	struct built_cache cache =
		build_cache((enum cache_format)(seed % 3), entries, 1 + seed / 8 % ARRAY_SIZE(entries), hwcaps, 1);
	struct built_cache merged = {0};

	if (seed / 4 % 2 == 0)
		return cache;
	merge(cache.data, cache.size, NULL, 1 + seed % ARRAY_SIZE(libraries), &merged);
	free(cache.data);
	return merged;
}

/* Most damage worth doing is to a number. */
static void change_number(uint8_t *data, size_t size, unsigned seed)
{
	uint32_t values[] = {
		0, 1, 2, 0xffffffff, 0x80000000, (uint32_t)size, (uint32_t)size - 1, (uint32_t)size + 1, seed % 512};
	size_t at = (size_t)(seed >> 4) % (size / 4) * 4;
	uint32_t value = values[seed % ARRAY_SIZE(values)];

	if (seed & 8)
		value = get32(data, at) + (seed & 1 ? 1U : (uint32_t)-1);
	memcpy(data + at, &value, sizeof(value));
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
	if (seed % 16 == 0 || size < 16) {
		struct built_cache cache = build_seed(seed / 16);
		bool fits = cache.size <= max_size;

		if (fits) {
			memcpy(data, cache.data, cache.size);
			size = cache.size;
		}
		free(cache.data);
		if (fits)
			return size;
	}
	if (seed % 3 == 0 || size < 16)
		return LLVMFuzzerMutate(data, size, max_size);
	change_number(data, size, seed);
	return size;
}
