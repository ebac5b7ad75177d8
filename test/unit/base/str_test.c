/* SPDX-License-Identifier: Apache-2.0 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unit.h"

#include "base/str.h"

static void test_below(void **state)
{
	(void)state;
	assert_true(str_is_below("/a/b", "/a/b") && str_is_below("/a/b/c", "/a/b") && str_is_below("/a/b/c", "/a/b/"));
	assert_true(str_is_below("/a", "/") && str_is_below("/", "/"));
	assert_true(str_is_below("/a/b", "/a/b//") && str_is_below("/a/b/c", "/a/b//") && str_is_below("/x", "//"));
	assert_false(str_is_below("/ab", "/a/") || str_is_below("x", "") || str_is_below("/a/", "/a/b"));
	assert_false(str_is_below("/a/bc", "/a/b") || str_is_below("/a", "/a/b") || str_is_below("/a/bc/d", "/a/b"));
}

static void test_split(void **state)
{
	struct strv list = {0};

	(void)state;
	assert_int_equal(strv_split(" 0, 1\t,,a b ,\r\n", ",", &list), 0);
	assert_int_equal(list.count, 3);
	assert_string_equal(list.items[0], "0");
	assert_string_equal(list.items[1], "1");
	assert_string_equal(list.items[2], "a b");
	strv_clear(&list);
}

/* Of an image's variable of 16 MiB no more is made than of the longest that a program can have. */
static void test_split_is_bounded(void **state)
{
	enum { ITEMS = 8 << 20 };
	_cleanup_free_ char *text = malloc(2 * ITEMS + 1);
	struct strv list = {0};

	(void)state;
	assert_non_null(text);
	for (size_t i = 0; i < ITEMS; i++)
		memcpy(text + 2 * i, "0,", 2);
	text[2 * ITEMS] = '\0';
	assert_int_equal(strv_split(text, ",", &list), -E2BIG);
	assert_int_equal(list.count, STRV_SPLIT_MAX);
	assert_int_equal(strv_split("1", ",", &list), -E2BIG);
	strv_clear(&list);
	text[2 * STRV_SPLIT_MAX] = '\0';
	assert_int_equal(strv_split(text, ",", &list), 0);
	assert_int_equal(list.count, STRV_SPLIT_MAX);
	strv_clear(&list);
}

static void test_what_was_meant(void **state)
{
	static const char *const names[] = {"", "fail", "warn", "accept-nvidia-visible-devices-as-volume-mounts"};
	static const char *const pairs[][2] = {
		{"fial", "; did you mean 'fail'?"}, /* two letters swapped */
		{"wrn", "; did you mean 'warn'?"},  /* one left out */
		{"wa", "; did you mean 'warn'?"},   /* a beginning */
		{"accept-nvidia-visible-device-as-volume-mount",
		 "; did you mean 'accept-nvidia-visible-devices-as-volume-mounts'?"},
		{"", ""},
		{"xy", ""},
		{"wax", ""},
		{"never", ""},
		{"an-answer-that-is-longer-than-any-name-of-ours-and-that-is-not-looked-at", ""},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(pairs); i++) {
		char suggestion[SUGGESTION_SIZE];

		assert_string_equal(str_suggest(names, ARRAY_SIZE(names), pairs[i][0], suggestion), pairs[i][1]);
	}
	assert_null(str_nearest(NULL, 0, "fail"));
}

/* As printf(3) does it, which is not called where there are texts alone. */
#define ASSERT_FORMATTED(...)                                                                                          \
	do {                                                                                                           \
		char expected[2048], *text = NULL;                                                                     \
		(void)snprintf(expected, sizeof(expected), __VA_ARGS__);                                               \
		assert_int_equal(str_format(&text, __VA_ARGS__), 0);                                                   \
		assert_string_equal(text, expected);                                                                   \
		free(text);                                                                                            \
	} while (0)

static void test_formats(void **state)
{
	char wide[1000];

	(void)state;
	memset(wide, 'w', sizeof(wide) - 1);
	wide[sizeof(wide) - 1] = '\0';
	ASSERT_FORMATTED("plain");
	ASSERT_FORMATTED("%s", "");
	ASSERT_FORMATTED("%s%s", "/a", "/b");
	ASSERT_FORMATTED("/usr/%s/%s.so", "lib", "libcuda");
	ASSERT_FORMATTED("%s of %s", wide, wide);
	ASSERT_FORMATTED("%s is 100%%", "it");
	ASSERT_FORMATTED("%s has %d", "it", 7);
	ASSERT_FORMATTED("%.*s|%5s|%s", 2, "abc", "d", wide);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_below),
		cmocka_unit_test(test_split),
		cmocka_unit_test(test_split_is_bounded),
		cmocka_unit_test(test_what_was_meant),
		cmocka_unit_test(test_formats),
	};

	return cmocka_run_group_tests_name("str", tests, NULL, NULL);
}
