/* SPDX-License-Identifier: Apache-2.0 */

/* Wide strings as a driver writes them, good and bad. */

#include "unit.h"

#include <stdlib.h>

#include "dxg/dxg.h"

static void expect16(const uint16_t *units, size_t count, const char *text)
{
	_cleanup_free_ char *got = NULL;

	assert_int_equal(utf16_from_wide(&(struct span){(const unsigned char *)units, count * 2}, 2, &got), 0);
	assert_string_equal(got, text);
}

static void expect32(const uint32_t *units, size_t count, const char *text)
{
	_cleanup_free_ char *got = NULL;

	assert_int_equal(utf16_from_wide(&(struct span){(const unsigned char *)units, count * 4}, 4, &got), 0);
	assert_string_equal(got, text);
}

#define EXPECT16(text, ...) \
	expect16((const uint16_t[]){__VA_ARGS__}, ARRAY_SIZE(((const uint16_t[]){__VA_ARGS__})), text)
#define EXPECT32(text, ...) \
	expect32((const uint32_t[]){__VA_ARGS__}, ARRAY_SIZE(((const uint32_t[]){__VA_ARGS__})), text)

static void converts_utf16(void **state)
{
	(void)state;
	EXPECT16("", 0);
	EXPECT16("AB", 'A', 'B', 0, 'C');
	EXPECT16("\xc2\xae", 0xae, 0);
	EXPECT16("\x7f\xc2\x80\xdf\xbf\xe0\xa0\x80", 0x7f, 0x80, 0x7ff, 0x800, 0);
	EXPECT16("\xe2\x84\xa2", 0x2122, 0);
	EXPECT16("\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf", 0xd7ff, 0xe000, 0xffff, 0);
	EXPECT16("\xf0\x90\x80\x80", 0xd800, 0xdc00, 0);
	EXPECT16("\xf0\x9f\x98\x80!", 0xd83d, 0xde00, '!', 0);
	EXPECT16("\xf4\x8f\xbf\xbf", 0xdbff, 0xdfff, 0);
}

static void replaces_lone_surrogates(void **state)
{
	(void)state;
	EXPECT16("\xef\xbf\xbd"
		 "A",
		 0xd83d, 'A', 0);
	EXPECT16("A\xef\xbf\xbd", 'A', 0xd83d, 0, 0xde00);
	EXPECT16("\xef\xbf\xbd"
		 "B",
		 0xde00, 'B', 0);
	EXPECT16("\xef\xbf\xbd\xf0\x9f\x98\x80", 0xd83d, 0xd83d, 0xde00, 0);
	EXPECT16("\xef\xbf\xbd", 0xd83d);
}

static void converts_utf32(void **state)
{
	(void)state;
	EXPECT32("AB", 'A', 'B', 0, 'C');
	EXPECT32("\xf0\x9f\x98\x80", 0x1f600, 0);
	EXPECT32("\xf4\x8f\xbf\xbf\xef\xbf\xbd", 0x10ffff, 0x110000, 0);
	EXPECT32("\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd", 0xffffffff, 0xd83d, 0xde00, 0);
}

static void ends_where_the_buffer_ends(void **state)
{
	const unsigned char odd[] = {'A', 0, 'B', 0, 'C'};
	_cleanup_free_ char *two = NULL, *four = NULL, *none = NULL;

	(void)state;
	EXPECT16("AB", 'A', 'B');
	EXPECT32("AB", 'A', 'B');
	assert_int_equal(utf16_from_wide(&(struct span){odd, sizeof(odd)}, 2, &two), 0);
	assert_string_equal(two, "AB");
	assert_int_equal(utf16_from_wide(&(struct span){odd, 3}, 4, &four), 0);
	assert_string_equal(four, "");
	assert_int_equal(utf16_from_wide(&(struct span){odd, 0}, 2, &none), 0);
	assert_string_equal(none, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(converts_utf16),
		cmocka_unit_test(replaces_lone_surrogates),
		cmocka_unit_test(converts_utf32),
		cmocka_unit_test(ends_where_the_buffer_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
