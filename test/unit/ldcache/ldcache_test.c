/* SPDX-License-Identifier: Apache-2.0 */

/* Loader caches: merged, merged again, and read while someone lies. */

#include "unit.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "cache-builder.h"
#include "ldcache/internal.h"
#include "ldcache/ldcache.h"

/* ---- the image: what a Debian image with a baked-in driver, a 32-bit one and glibc-hwcaps looks like ---- */

static const char *const image_hwcaps[] = {"x86-64-v2", "x86-64-v3"};

static const struct built_entry image_entries[] = {
	{"libz.so.1", "/lib/libz.so.1", ABI_HERE, 0},
	{"libfast.so.1", "/lib/glibc-hwcaps/x86-64-v2/libfast.so.1", ABI_HERE, HWCAP_NAMED(0)},
	{"libfast.so.1", "/lib/glibc-hwcaps/x86-64-v3/libfast.so.1", ABI_HERE, HWCAP_NAMED(1)},
	{"libfast.so.1", "/lib/libfast.so.1", ABI_HERE, 0},
	{"libcuda.so.1", "/bakedx32/libcuda.so.1", ABI_X32, 0},
	{"libcuda.so.1", "/baked/glibc-hwcaps/x86-64-v3/libcuda.so.1", ABI_HERE, HWCAP_NAMED(1)},
	{"libcuda.so.1", "/baked/libcuda.so.1", ABI_HERE, 0},
	{"libcuda.so.1", "/baked/compat/libcuda.so.1", ABI_HERE, 0},
	{"libcuda.so.1", "/baked32/libcuda.so.1", ABI_I386, 0},
	{"libcuda.so", "/baked/libcuda.so", ABI_HERE, 0},
	{"libc.so.6", "/lib/libc.so.6", ABI_HERE, 0},
	{"libLLVM.so.15", "/lib/libLLVM.so.15", ABI_HERE, 0},
};

static struct built_cache build_image(enum cache_format format)
{
	return build_cache(format, image_entries, ARRAY_SIZE(image_entries), image_hwcaps, ARRAY_SIZE(image_hwcaps));
}

static const struct ldcache_library driver[] = {
	{"libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1", true},
	{"libdxcore.so", "/usr/lib/wsl/lib/libdxcore.so", true},
	{"libLLVM.so.15", "/usr/lib/wsl/drivers/intel/libLLVM.so.15", false},
	{"libigc.so.2", "/usr/lib/wsl/drivers/intel/libigc.so.2", false},
	{"libdxcore.so", "/usr/lib/wsl/drivers/second/libdxcore.so", true},
	{"libshort.so", "/usr/lib/wsl/drivers/nv/libshort.so.5.1", true},
};

static const struct ldcache_library next_driver[] = {
	{"libcuda.so.1", "/usr/lib/wsl/drivers/next/libcuda.so.1", true},
	{"libnew.so.1", "/usr/lib/wsl/lib/libnew.so.1", true},
};

struct merged {
	unsigned char *data;
	size_t size;
};

static void merged_clear(struct merged *merged)
{
	free(merged->data);
}
#define _cleanup_merged_ _cleanup_(merged_clear)

static void built_clear(struct built_cache *cache)
{
	free(cache->data);
}
#define _cleanup_built_ _cleanup_(built_clear)

static int merge_span(const struct span *old, const struct strv *former, const struct ldcache_library *libraries,
		      size_t count, struct merged *ret)
{
	struct ldcache_merged merged;
	struct built_cache joined;
	int r = ldcache_merge(old, former, libraries, count, &merged);

	if (r < 0)
		return r;
	joined = join_parts(merged.parts, ARRAY_SIZE(merged.parts));
	free(merged.owned);
	*ret = (struct merged){joined.data, joined.size};
	return 0;
}

static void merge(const void *data, size_t size, const struct ldcache_library *libraries, size_t count,
		  struct merged *ret)
{
	struct span old = {data, size};

	assert_int_equal(merge_span(&old, NULL, libraries, count, ret), 0);
}

/* What the loader takes for @name and @abi, in the order of trying: paths and hwcap names, one line. */
static char *answers(const struct merged *merged, const char *name, int abi)
{
	char *text = strdup("");

	for (size_t i = 0; i < read_count(merged->data, merged->size); i++) {
		struct read_entry entry = read_at(merged->data, merged->size, i);
		const char *hwcap = entry.hwcap ? read_hwcap(merged->data, merged->size, entry.hwcap) : "";
		char *longer;

		if (entry.flags != abi || !streq(entry.name, name))
			continue;
		assert_true(str_format(&longer, "%s%s%s%s%s", text, *text ? " " : "", hwcap ? hwcap : "?",
				       entry.hwcap ? ":" : "", entry.path) >= 0);
		free(text);
		text = longer;
	}
	return text;
}

static void expect(const struct merged *merged, const char *name, int abi, const char *paths)
{
	_cleanup_free_ char *got = answers(merged, name, abi);

	assert_string_equal(got, paths);
}

static void expect_sorted(const struct merged *merged)
{
	for (size_t i = 1; i < read_count(merged->data, merged->size); i++) {
		struct read_entry before = read_at(merged->data, merged->size, i - 1);
		struct read_entry entry = read_at(merged->data, merged->size, i);
		int order = libcmp(before.name, entry.name);

		assert_true(order >= 0);
		if (order == 0)
			assert_true(before.flags >= entry.flags);
	}
}

static void expect_same(const struct merged *a, const struct merged *b)
{
	assert_int_equal(a->size, b->size);
	assert_memory_equal(a->data, b->data, a->size);
}

/* ---- order ---- */

static void test_libcmp(void **state)
{
	static const struct {
		const char *a, *b;
		int order;
	} cases[] = {
		{"libc.so.6", "libc.so.6", 0},
		{"libc.so.10", "libc.so.9", 1},
		{"libc.so.6", "libc.so.06", 0},
		{"liba.so", "liba.so.1", -1},
		{"lib1", "liba", 1},
		{"liba", "lib1", -1},
		{"libA", "liba", -1},
		{"lib+", "lib-", -1},
		{"lib1.9", "lib1.10", -1},
		{"lib1a", "lib1b", -1},
		{"", "", 0},
		{"", "a", -1},
		/* glibc computes in int: 2^32 is 0, and 3,000,000,000 is negative. */
		{"lib4294967296", "lib0", 0},
		{"lib3000000000", "lib0", -1},
		{"lib99999999999999999999999999999999999999999999999999999999999999999999999", "lib1", 1},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases) - 1; i++) {
		int order = libcmp(cases[i].a, cases[i].b), reverse = libcmp(cases[i].b, cases[i].a);

		assert_int_equal((order > 0) - (order < 0), cases[i].order);
		assert_int_equal((reverse > 0) - (reverse < 0), -cases[i].order);
	}
	/* Only that it ends. */
	(void)libcmp(cases[ARRAY_SIZE(cases) - 1].a, cases[ARRAY_SIZE(cases) - 1].b);
}

/* ---- what a merge does ---- */

static void check_merged(const struct merged *merged, bool has_hwcaps)
{
	expect_sorted(merged);
	expect(merged, "libcuda.so.1", ABI_HERE, "/usr/lib/wsl/lib/libcuda.so.1");
	expect(merged, "libcuda.so.1", ABI_I386, "/baked32/libcuda.so.1");
	expect(merged, "libcuda.so.1", ABI_X32, "/bakedx32/libcuda.so.1");
	expect(merged, "libcuda.so", ABI_HERE, "/baked/libcuda.so");
	expect(merged, "libdxcore.so", ABI_HERE, "/usr/lib/wsl/lib/libdxcore.so");
	expect(merged, "libLLVM.so.15", ABI_HERE, "/lib/libLLVM.so.15");
	expect(merged, "libigc.so.2", ABI_HERE, "/usr/lib/wsl/drivers/intel/libigc.so.2");
	expect(merged, "libshort.so", ABI_HERE, "/usr/lib/wsl/drivers/nv/libshort.so.5.1");
	expect(merged, "libz.so.1", ABI_HERE, "/lib/libz.so.1");
	if (has_hwcaps)
		expect(merged, "libfast.so.1", ABI_HERE,
		       "x86-64-v2:/lib/glibc-hwcaps/x86-64-v2/libfast.so.1 "
		       "x86-64-v3:/lib/glibc-hwcaps/x86-64-v3/libfast.so.1 /lib/libfast.so.1");
}

static void test_merge_formats(void **state)
{
	_cleanup_merged_ struct merged from_new = {0}, from_compat = {0};

	(void)state;
	for (enum cache_format format = FORMAT_NEW; format <= FORMAT_OLD; format++) {
		_cleanup_built_ struct built_cache image = build_image(format);
		_cleanup_merged_ struct merged merged = {0};

		merge(image.data, image.size, driver, ARRAY_SIZE(driver), &merged);
		check_merged(&merged, format != FORMAT_OLD);
		if (format == FORMAT_NEW)
			merge(image.data, image.size, driver, ARRAY_SIZE(driver), &from_new);
		if (format == FORMAT_COMPAT)
			merge(image.data, image.size, driver, ARRAY_SIZE(driver), &from_compat);
	}
	expect_same(&from_new, &from_compat);
}

/* With an odd number of old entries the new header is not where they end. */
static void test_compat_padding(void **state)
{
	(void)state;
	for (size_t count = 1; count <= ARRAY_SIZE(image_entries); count++) {
		_cleanup_built_ struct built_cache compat =
			build_cache(FORMAT_COMPAT, image_entries, count, image_hwcaps, 2);
		_cleanup_built_ struct built_cache new = build_cache(FORMAT_NEW, image_entries, count, image_hwcaps, 2);
		_cleanup_merged_ struct merged from_compat = {0}, from_new = {0};

		merge(compat.data, compat.size, driver, ARRAY_SIZE(driver), &from_compat);
		merge(new.data, new.size, driver, ARRAY_SIZE(driver), &from_new);
		expect_same(&from_compat, &from_new);
		expect(&from_compat, "libz.so.1", ABI_HERE, "/lib/libz.so.1");
	}
}

static void test_header(void **state)
{
	_cleanup_built_ struct built_cache image = build_image(FORMAT_NEW);
	_cleanup_merged_ struct merged merged = {0}, unset = {0}, wrong = {0}, none = {0};
	const unsigned char *section = NULL;

	(void)state;
	merge(image.data, image.size, driver, ARRAY_SIZE(driver), &merged);
	assert_int_equal(merged.data[28], 2);
	assert_int_equal(read_section(merged.data, merged.size, 0, &section), strlen("ldconfig of a test"));
	assert_memory_equal(section, "ldconfig of a test", strlen("ldconfig of a test"));
	/* Written before glibc said its byte order. */
	image.data[28] = 0;
	merge(image.data, image.size, driver, ARRAY_SIZE(driver), &unset);
	assert_int_equal(unset.data[28], 0);
	check_merged(&unset, true);
	/* Another machine's: the loader here does not read it. */
	image.data[28] = 3;
	merge(image.data, image.size, driver, ARRAY_SIZE(driver), &wrong);
	merge("", 0, driver, ARRAY_SIZE(driver), &none);
	expect_same(&wrong, &none);
}

static void test_no_cache(void **state)
{
	_cleanup_merged_ struct merged merged = {0}, again = {0};

	(void)state;
	merge("", 0, driver, ARRAY_SIZE(driver), &merged);
	assert_int_equal(read_count(merged.data, merged.size), 5);
	assert_int_equal(merged.data[28], 2);
	expect_sorted(&merged);
	expect(&merged, "libLLVM.so.15", ABI_HERE, "/usr/lib/wsl/drivers/intel/libLLVM.so.15");
	merge(merged.data, merged.size, driver, ARRAY_SIZE(driver), &again);
	expect_same(&merged, &again);
}

static void test_null_span(void **state)
{
	struct span none = {0};
	_cleanup_merged_ struct merged merged = {0};

	(void)state;
	assert_int_equal(merge_span(&none, NULL, NULL, 0, &merged), 0);
	assert_int_equal(read_count(merged.data, merged.size), 0);
	assert_null(ldcache_find(&none, "libc.so.6"));
}

static void test_idempotent(void **state)
{
	(void)state;
	for (enum cache_format format = FORMAT_NEW; format <= FORMAT_OLD; format++) {
		_cleanup_built_ struct built_cache image = build_image(format);
		_cleanup_merged_ struct merged first = {0}, second = {0};

		merge(image.data, image.size, driver, ARRAY_SIZE(driver), &first);
		merge(first.data, first.size, driver, ARRAY_SIZE(driver), &second);
		expect_same(&first, &second);
	}
}

static void test_driver_update(void **state)
{
	_cleanup_built_ struct built_cache image = build_image(FORMAT_NEW);
	_cleanup_merged_ struct merged old = {0}, updated = {0}, direct = {0}, back = {0}, none = {0}, never = {0};
	_cleanup_merged_ struct merged nothing = {0};

	(void)state;
	merge(image.data, image.size, driver, ARRAY_SIZE(driver), &old);
	merge(old.data, old.size, next_driver, ARRAY_SIZE(next_driver), &updated);
	merge(image.data, image.size, next_driver, ARRAY_SIZE(next_driver), &direct);
	expect_same(&updated, &direct);
	expect(&updated, "libdxcore.so", ABI_HERE, "");
	assert_null(memmem(updated.data, updated.size, "/intel/", 7));
	merge(updated.data, updated.size, driver, ARRAY_SIZE(driver), &back);
	expect_same(&back, &old);
	/* No GPU any more: what it shadowed is back. */
	merge(old.data, old.size, NULL, 0, &none);
	merge(image.data, image.size, NULL, 0, &never);
	expect_same(&none, &never);
	merge(none.data, none.size, NULL, 0, &nothing);
	expect_same(&none, &nothing);
	expect(&none, "libcuda.so.1", ABI_HERE,
	       "x86-64-v3:/baked/glibc-hwcaps/x86-64-v3/libcuda.so.1 /baked/libcuda.so.1 /baked/compat/libcuda.so.1");
}

static void test_ldconfig_run_inside(void **state)
{
	/* Files of the old driver, found through the drop-in by an ldconfig run in the container. */
	static const struct built_entry entries[] = {
		{"libold.so.1", "/usr/lib/wsl/drivers/old/libold.so.1", ABI_HERE, 0},
		{"libold.so.1", "/lib/libold.so.1", ABI_HERE, 0},
		{"libdeep.so.1", "/usr/lib/wsl/drivers/old/deep/libdeep.so.1", ABI_HERE, 0},
		{"libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1", ABI_HERE, 0},
		{"libbeside.so.1", "/usr/lib/wsl/drivers/older/libbeside.so.1", ABI_HERE, 0},
	};
	char *directories[] = {(char[]){"/usr/lib/wsl/lib"}, (char[]){"/usr/lib/wsl/drivers/old"}};
	struct strv former = {directories, ARRAY_SIZE(directories)};
	_cleanup_built_ struct built_cache image = build_cache(FORMAT_NEW, entries, ARRAY_SIZE(entries), NULL, 0);
	_cleanup_merged_ struct merged merged = {0}, again = {0};
	struct span old = {image.data, image.size}, once;

	(void)state;
	assert_int_equal(merge_span(&old, &former, next_driver, 2, &merged), 0);
	expect_sorted(&merged);
	expect(&merged, "libold.so.1", ABI_HERE, "/lib/libold.so.1");
	expect(&merged, "libcuda.so.1", ABI_HERE, "/usr/lib/wsl/drivers/next/libcuda.so.1");
	expect(&merged, "libbeside.so.1", ABI_HERE, "/usr/lib/wsl/drivers/older/libbeside.so.1");
	expect(&merged, "libdeep.so.1", ABI_HERE, "/usr/lib/wsl/drivers/old/deep/libdeep.so.1");
	once = (struct span){merged.data, merged.size};
	assert_int_equal(merge_span(&once, &former, next_driver, 2, &again), 0);
	expect_same(&merged, &again);
}

/* With a record nothing is guessed: what the image itself has in a directory of ours stays. */
static void test_record_before_former(void **state)
{
	static const struct built_entry entries[] = {{"libown.so.1", "/usr/lib/wsl/lib/libown.so.1", ABI_HERE, 0}};
	char *directories[] = {(char[]){"/usr/lib/wsl/lib"}};
	struct strv former = {directories, ARRAY_SIZE(directories)};
	_cleanup_built_ struct built_cache image = build_cache(FORMAT_NEW, entries, ARRAY_SIZE(entries), NULL, 0);
	_cleanup_merged_ struct merged first = {0}, second = {0};
	struct span span;

	(void)state;
	merge(image.data, image.size, driver, ARRAY_SIZE(driver), &first);
	span = (struct span){first.data, first.size};
	assert_int_equal(merge_span(&span, &former, driver, ARRAY_SIZE(driver), &second), 0);
	expect_same(&first, &second);
	expect(&second, "libown.so.1", ABI_HERE, "/usr/lib/wsl/lib/libown.so.1");
}

/* Bytes from a network or a mapped file may lie anywhere. */
static void test_unaligned(void **state)
{
	_cleanup_built_ struct built_cache image = build_image(FORMAT_NEW);
	_cleanup_free_ unsigned char *shifted = malloc(image.size + 8);
	_cleanup_merged_ struct merged aligned = {0};

	(void)state;
	merge(image.data, image.size, driver, ARRAY_SIZE(driver), &aligned);
	for (size_t shift = 1; shift < 8; shift++) {
		_cleanup_merged_ struct merged merged = {0};

		memcpy(shifted + shift, image.data, image.size);
		merge(shifted + shift, image.size, driver, ARRAY_SIZE(driver), &merged);
		expect_same(&aligned, &merged);
	}
}

static void test_large(void **state)
{
	enum { COUNT = 3000 };
	_cleanup_free_ struct built_entry *entries = calloc(COUNT, sizeof(*entries));
	_cleanup_strv_ struct strv names = {0};
	_cleanup_built_ struct built_cache image = {0};
	_cleanup_merged_ struct merged merged = {0};

	(void)state;
	for (int i = 0; i < COUNT; i++) {
		char *name;

		assert_true(str_format(&name, "liba%d.so.1", COUNT - i) >= 0);
		assert_int_equal(strv_take(&names, name), 0);
		entries[i] = (struct built_entry){name, name, ABI_HERE, 0};
	}
	image = build_cache(FORMAT_COMPAT, entries, COUNT, NULL, 0);
	for (int i = 0; i < COUNT; i += 7) {
		struct ldcache_library library = {names.items[i], "/new", true};
		struct span span;

		merged_clear(&merged);
		merge(image.data, image.size, &library, 1, &merged);
		assert_int_equal(read_count(merged.data, merged.size), COUNT);
		assert_string_equal(read_at(merged.data, merged.size, (size_t)i).path, "/new");
		span = (struct span){merged.data, merged.size};
		assert_string_equal(ldcache_find(&span, names.items[i]), "/new");
		span = (struct span){image.data, image.size};
		assert_string_equal(ldcache_find(&span, names.items[i]), names.items[i]);
	}
	expect_sorted(&merged);
}

static void test_find(void **state)
{
	(void)state;
	for (enum cache_format format = FORMAT_NEW; format <= FORMAT_OLD; format++) {
		_cleanup_built_ struct built_cache image = build_image(format);
		struct span span = {image.data, image.size};

		assert_string_equal(ldcache_find(&span, "libc.so.6"), "/lib/libc.so.6");
		assert_string_equal(ldcache_find(&span, "libz.so.1"), "/lib/libz.so.1");
		assert_string_equal(ldcache_find(&span, "libLLVM.so.15"), "/lib/libLLVM.so.15");
		assert_null(ldcache_find(&span, "libc.so"));
		assert_null(ldcache_find(&span, "zzz"));
		assert_null(ldcache_find(&span, ""));
		if (format == FORMAT_OLD)
			continue;
		assert_string_equal(ldcache_find(&span, "libfast.so.1"), "/lib/libfast.so.1");
		assert_string_equal(ldcache_find(&span, "libcuda.so.1"), "/baked/libcuda.so.1");
	}
}

struct visited {
	size_t next;
	bool in_order;
};

static void visit(void *user, const char *name, const char *path)
{
	struct visited *visited = user;

	visited->in_order &= visited->next < ARRAY_SIZE(image_entries) &&
			     streq(name, image_entries[visited->next].name) &&
			     streq(path, image_entries[visited->next].path);
	visited->next++;
}

static void test_each(void **state)
{
	(void)state;
	for (enum cache_format format = FORMAT_NEW; format <= FORMAT_OLD; format++) {
		_cleanup_built_ struct built_cache image = build_image(format);
		struct span span = {image.data, image.size};
		struct visited visited = {0, true};

		ldcache_each(&span, visit, &visited);
		assert_int_equal(visited.next, ARRAY_SIZE(image_entries));
		assert_true(visited.in_order);
	}
}

static void count_length(void *user, const char *name, const char *path)
{
	*(size_t *)user += strlen(name) + strlen(path);
}

/* ---- hostile caches ---- */

/*
 * Whatever comes in: nothing is read outside (the copy has no byte to spare, so that ASan sees it), the result is a cache
 * whose every offset holds, and merging again changes nothing.
 */
static void survives(const unsigned char *data, size_t size)
{
	_cleanup_free_ unsigned char *exact = malloc(size > 0 ? size : 1);
	_cleanup_merged_ struct merged merged = {0}, again = {0}, forgotten = {0};
	char *directories[] = {(char[]){"/lib"}};
	struct strv former = {directories, 1};
	struct span span = {exact, size};
	const unsigned char *section = NULL;
	size_t total = 0;

	assert_non_null(exact);
	memcpy(exact, data, size);
	merge(exact, size, driver, ARRAY_SIZE(driver), &merged);
	for (size_t i = 0; i < read_count(merged.data, merged.size); i++)
		(void)read_at(merged.data, merged.size, i);
	for (size_t i = 0, length = read_section(merged.data, merged.size, 1, &section); i < length / 4; i++)
		(void)read_hwcap(merged.data, merged.size, i);
	merge(merged.data, merged.size, driver, ARRAY_SIZE(driver), &again);
	expect_same(&merged, &again);
	assert_int_equal(merge_span(&span, &former, NULL, 0, &forgotten), 0);
	for (size_t i = 0; i < ARRAY_SIZE(image_entries); i++)
		(void)ldcache_find(&span, image_entries[i].name);
	ldcache_each(&span, count_length, &total);
}

static void test_truncated(void **state)
{
	(void)state;
	for (enum cache_format format = FORMAT_NEW; format <= FORMAT_OLD; format++) {
		_cleanup_built_ struct built_cache image = build_image(format);
		_cleanup_merged_ struct merged merged = {0};

		merge(image.data, image.size, driver, ARRAY_SIZE(driver), &merged);
		for (size_t size = 0; size <= image.size; size++)
			survives(image.data, size);
		for (size_t size = 0; size <= merged.size; size++)
			survives(merged.data, size);
	}
}

static void try_field(unsigned char *data, size_t size, size_t at)
{
	uint32_t original = get32(data, at), entries_end = 48 + 24 * (uint32_t)ARRAY_SIZE(image_entries);
	uint32_t values[] = {0,
			     1,
			     3,
			     0x7fffffff,
			     0x80000000,
			     0xfffffffe,
			     0xffffffff,
			     original + 1,
			     original - 1,
			     entries_end - 1,
			     entries_end,
			     (uint32_t)size - 1,
			     (uint32_t)size,
			     (uint32_t)size + 1,
			     (uint32_t)size - 4,
			     (uint32_t)size - 8};

	for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
		memcpy(data + at, &values[i], sizeof(values[i]));
		survives(data, size);
	}
	memcpy(data + at, &original, sizeof(original));
}

static void test_every_field(void **state)
{
	(void)state;
	for (enum cache_format format = FORMAT_NEW; format <= FORMAT_OLD; format++) {
		_cleanup_built_ struct built_cache image = build_image(format);
		_cleanup_merged_ struct merged merged = {0};

		merge(image.data, image.size, driver, ARRAY_SIZE(driver), &merged);
		for (size_t at = 0; at + 4 <= image.size; at += 4)
			try_field(image.data, image.size, at);
		for (size_t at = 0; at + 4 <= merged.size; at += 4)
			try_field(merged.data, merged.size, at);
	}
}

static void test_extension_anywhere(void **state)
{
	_cleanup_built_ struct built_cache image = build_image(FORMAT_NEW);

	(void)state;
	for (uint32_t at = 0; at < image.size + 16; at++) {
		memcpy(image.data + 32, &at, sizeof(at));
		survives(image.data, image.size);
	}
}

/* The record's own numbers, from a merged cache: what a forger would change. */
static void test_forged_record(void **state)
{
	_cleanup_built_ struct built_cache image = build_image(FORMAT_NEW);
	_cleanup_merged_ struct merged merged = {0};
	const unsigned char *record = NULL;
	size_t length, offset;

	(void)state;
	merge(image.data, image.size, driver, ARRAY_SIZE(driver), &merged);
	length = read_section(merged.data, merged.size, 0x67727463, &record);
	assert_true(length > 16);
	offset = (size_t)(record - merged.data);
	for (size_t at = offset; at + 4 <= offset + length; at += 4) {
		uint32_t original = get32(merged.data, at);

		for (uint32_t value = 0; value < 40; value++) {
			memcpy(merged.data + at, &value, sizeof(value));
			survives(merged.data, merged.size);
		}
		memcpy(merged.data + at, &original, sizeof(original));
	}
}

/* A record that would cut off the names of glibc-hwcaps directories is not believed. */
static void test_record_without_hwcap_names(void **state)
{
	_cleanup_built_ struct built_cache image = build_image(FORMAT_NEW);
	_cleanup_merged_ struct merged merged = {0}, again = {0};
	const unsigned char *record = NULL;
	uint32_t size;

	(void)state;
	merge(image.data, image.size, driver, ARRAY_SIZE(driver), &merged);
	assert_true(read_section(merged.data, merged.size, 0x67727463, &record) > 16);
	size = get32(record, 4) - (uint32_t)(sizeof("x86-64-v2") + sizeof("x86-64-v3"));
	memcpy(merged.data + (record - merged.data) + 4, &size, sizeof(size));
	merge(merged.data, merged.size, driver, ARRAY_SIZE(driver), &again);
	check_merged(&again, true);
}

/* Thousands of sections, each good for itself: a loader takes the last one, we none. */
static void test_many_sections(void **state)
{
	enum { COUNT = 2000 };

	(void)state;
	for (uint32_t count = 1; count <= COUNT; count += COUNT - 1) {
		_cleanup_built_ struct built_cache image =
			build_cache(FORMAT_NEW, image_entries, ARRAY_SIZE(image_entries), NULL, 0);
		_cleanup_merged_ struct merged merged = {0};
		const unsigned char *section = NULL;
		uint32_t offset;

		pad_to(&image, 4);
		offset = (uint32_t)image.size;
		memcpy(image.data + 32, &offset, sizeof(offset));
		put32(&image, 0xeaa42174);
		put32(&image, count);
		for (uint32_t i = 0; i < count; i++) {
			put32(&image, 1);
			put32(&image, 0);
			put32(&image, 48 + 4); /* the first entry's name: an offset of a string */
			put32(&image, 4);
		}
		merge(image.data, image.size, driver, ARRAY_SIZE(driver), &merged);
		assert_int_equal(read_section(merged.data, merged.size, 1, &section), count == 1 ? 4 : 0);
		expect(&merged, "libz.so.1", ABI_HERE, "/lib/libz.so.1");
	}
}

/* A result that the next start could not read is none. */
static void test_too_large(void **state)
{
	_cleanup_free_ unsigned char *large = calloc(1, LDCACHE_MAX_SIZE);
	_cleanup_built_ struct built_cache image =
		build_cache(FORMAT_NEW, image_entries, ARRAY_SIZE(image_entries), NULL, 0);
	struct span span = {large, LDCACHE_MAX_SIZE};
	_cleanup_merged_ struct merged merged = {0};

	(void)state;
	memset(large, 'x', LDCACHE_MAX_SIZE - 1);
	memcpy(large, image.data, image.size);
	assert_int_equal(merge_span(&span, NULL, driver, ARRAY_SIZE(driver), &merged), -E2BIG);
	assert_null(merged.data);
	span.size -= 4096;
	large[span.size - 1] = '\0';
	assert_int_equal(merge_span(&span, NULL, driver, ARRAY_SIZE(driver), &merged), 0);
	assert_true(merged.size <= LDCACHE_MAX_SIZE);
}

static void test_unsorted(void **state)
{
	struct built_entry entries[ARRAY_SIZE(image_entries)];
	unsigned seed = 1;

	(void)state;
	memcpy(entries, image_entries, sizeof(entries));
	for (int round = 0; round < 500; round++) {
		_cleanup_built_ struct built_cache image = {0};
		size_t a = (size_t)rand_r(&seed) % ARRAY_SIZE(entries), b = (size_t)rand_r(&seed) % ARRAY_SIZE(entries);
		struct built_entry entry = entries[a];

		entries[a] = entries[b];
		entries[b] = entry;
		image = build_cache(round % 2 ? FORMAT_NEW : FORMAT_COMPAT, entries, ARRAY_SIZE(entries), image_hwcaps,
				    2);
		survives(image.data, image.size);
	}
}

static void test_overlapping_strings(void **state)
{
	_cleanup_built_ struct built_cache image = build_image(FORMAT_NEW);
	uint32_t strings = 48 + 24 * (uint32_t)ARRAY_SIZE(image_entries);

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(image_entries); i++) {
		uint32_t key = strings + (uint32_t)i, value = strings + 5;

		memcpy(image.data + 48 + 24 * i + 4, &key, sizeof(key));
		memcpy(image.data + 48 + 24 * i + 8, &value, sizeof(value));
	}
	survives(image.data, image.size);
}

static void test_random_bytes(void **state)
{
	unsigned seed = 7;

	(void)state;
	for (int round = 0; round < 3000; round++) {
		_cleanup_built_ struct built_cache image = build_image((enum cache_format)(round % 3));

		for (int i = 0; i < 1 + round % 8; i++)
			image.data[(size_t)rand_r(&seed) % image.size] = (unsigned char)rand_r(&seed);
		survives(image.data, image.size);
	}
}

/* Bytes that are not a loader cache leave ours alone in the result. */
static void test_not_a_cache(void **state)
{
	static const char *const texts[] = {
		"", "x", "glibc-ld.so.cache1.0", "glibc-ld.so.cache1.1", "ld.so-1.7.0", "ld.so-1.7.1"};
	_cleanup_merged_ struct merged none = {0};

	(void)state;
	merge("", 0, driver, ARRAY_SIZE(driver), &none);
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		_cleanup_merged_ struct merged merged = {0};

		merge(texts[i], strlen(texts[i]), driver, ARRAY_SIZE(driver), &merged);
		expect_same(&merged, &none);
		survives((const unsigned char *)texts[i], strlen(texts[i]));
	}
}

/* ---- musl ---- */

static void test_musl_path(void **state)
{
	static const struct {
		const char *old, *front, *behind, *expected;
	} cases[] = {
		{NULL, "/a:/b", "", "/a:/b::\n/lib:/usr/local/lib:/usr/lib\n"},
		{NULL, "/a", "/c:/d", "/a::\n/lib:/usr/local/lib:/usr/lib\n::/c:/d\n"},
		{NULL, "", "/c", "/lib:/usr/local/lib:/usr/lib\n::/c\n"},
		{NULL, "", "", "/lib:/usr/local/lib:/usr/lib\n"},
		{"/x\n/y\n", "/a", "/y:/z", "/a::\n/x\n/y\n::/z\n"},
		{"/x\n/y", "/y", "", "/y::\n/x\n/y\n"},
		{"/a::\n/x\n::/z\n", "/b", "", "/b::\n/x\n"},
		{"/a::\n/x\n::/z\n", "", "", "/x\n"},
		{"/a::\n/x\n::/z", "/a", "/z", "/a::\n/x\n::/z\n"},
		{"/x::\n", "/a", "", "/a::\n\n"},
		{"/x::/y", "/a", "", "/a::\n/x::/y\n"},
		{"", "/a", "", "/a::\n\n"},
		{"::", "/a", "", "/a::\n::\n"},
		{"/x\n::/y\n/z\n", "/a", "", "/a::\n/x\n::/y\n/z\n"},
		{"\n\n", "/a", "", "/a::\n\n"},
		/* An image's own lines that look like ours go at once, not one at each start. */
		{"/x\n::/y", "/a", "", "/a::\n/x\n"},
		{"/x::\n/y::\n/z\n::/c\n::/d\n", "/a", "/e", "/a::\n/z\n::/e\n"},
		{"/x::\n::", "/a", "/e", "/a::\n::\n::/e\n"},
		{"/x::", "/a", "", "/a::\n\n"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_strv_ struct strv front = {0}, behind = {0};
		_cleanup_free_ char *once = NULL, *twice = NULL;

		assert_int_equal(strv_split(cases[i].front, ":", &front), 0);
		assert_int_equal(strv_split(cases[i].behind, ":", &behind), 0);
		assert_true(ldcache_musl_path(cases[i].old, &front, &behind, &once) >= 0);
		assert_string_equal(once, cases[i].expected);
		assert_true(ldcache_musl_path(once, &front, &behind, &twice) >= 0);
		assert_string_equal(twice, cases[i].expected);
	}
}

static void test_musl_path_without_quoting(void **state)
{
	char *directories[] = {(char[]){"/a:b"}, (char[]){"/a\nb"}, (char[]){"relative"}, (char[]){"/good"}};
	struct strv front = {directories, ARRAY_SIZE(directories)};
	_cleanup_free_ char *text = NULL;

	(void)state;
	assert_int_equal(ldcache_musl_path("/x\n", &front, NULL, &text), 0);
	assert_string_equal(text, "/good::\n/x\n");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_libcmp),
		cmocka_unit_test(test_merge_formats),
		cmocka_unit_test(test_compat_padding),
		cmocka_unit_test(test_header),
		cmocka_unit_test(test_no_cache),
		cmocka_unit_test(test_null_span),
		cmocka_unit_test(test_idempotent),
		cmocka_unit_test(test_driver_update),
		cmocka_unit_test(test_ldconfig_run_inside),
		cmocka_unit_test(test_record_before_former),
		cmocka_unit_test(test_unaligned),
		cmocka_unit_test(test_large),
		cmocka_unit_test(test_find),
		cmocka_unit_test(test_each),
		cmocka_unit_test(test_truncated),
		cmocka_unit_test(test_every_field),
		cmocka_unit_test(test_extension_anywhere),
		cmocka_unit_test(test_forged_record),
		cmocka_unit_test(test_record_without_hwcap_names),
		cmocka_unit_test(test_many_sections),
		cmocka_unit_test(test_too_large),
		cmocka_unit_test(test_unsorted),
		cmocka_unit_test(test_overlapping_strings),
		cmocka_unit_test(test_random_bytes),
		cmocka_unit_test(test_not_a_cache),
		cmocka_unit_test(test_musl_path),
		cmocka_unit_test(test_musl_path_without_quoting),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
