/* SPDX-License-Identifier: Apache-2.0 */

#include "unit.h"

#include "base/str.h"

static void amounts_are_read(void **state)
{
	static const struct {
		const char *text;
		uint64_t bytes;
	} cases[] = {
		{"1", 1},
		{"4096", 4096},
		{"2K", 2048},
		{"512m", 512ULL << 20},
		{"8G", 8ULL << 30},
		{"8GiB", 8ULL << 30},
		{"8gb", 8ULL << 30},
		{"1Ti", 1ULL << 40},
		{"9223372036854775807", INT64_MAX},
	};
	static const char *const none[] = {
		"",
		"G",
		"0",
		"0G",
		"-1",
		"+1",
		" 1",
		"1 G",
		"1.5G",
		"8X",
		"8Gx",
		"8GG",
		"9223372036854775808",
		"9007199254740992K",
		"18446744073709551617",
		"0x10",
		"1e9",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint64_t bytes = 0;

		if (!str_parse_size(cases[i].text, &bytes) || bytes != cases[i].bytes)
			fail_msg("%s: %llu", cases[i].text, (unsigned long long)bytes);
	}
	for (size_t i = 0; i < ARRAY_SIZE(none); i++) {
		uint64_t bytes = 7;

		if (str_parse_size(none[i], &bytes) || bytes != 7)
			fail_msg("%s", none[i]);
	}
}

static void amounts_are_written(void **state)
{
	static const struct {
		uint64_t bytes;
		const char *text;
	} cases[] = {
		{0, "0 bytes"},
		{1023, "1023 bytes"},
		{1024, "1.0 KiB"},
		{1536ULL << 20, "1.5 GiB"},
		{(1ULL << 30) - 1, "1024.0 MiB"},
		{24ULL << 30, "24.0 GiB"},
		{5000ULL << 40, "5000.0 TiB"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char text[BYTES_TEXT_SIZE];

		str_format_size(cases[i].bytes, text);
		assert_string_equal(text, cases[i].text);
	}
}

static void shares_are_read_and_written(void **state)
{
	static const struct {
		const char *text, *written;
		uint64_t amount, of_1000;
	} cases[] = {
		{"all", "", 0, UINT64_MAX},
		{"1%", "1%", STR_SHARE(1), 10},
		{"100%", "100%", STR_SHARE(100), 1000},
		{"2K", "2.0 KiB", 2048, 2048},
	};
	static const char *const none[] = {"",    "%",   "0%",    "101%", "50 %",           "50%%",
					   "-5%", "+5%", "50.5%", "All",  "70368744177664K"};
	char text[BYTES_TEXT_SIZE];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint64_t amount = 7;

		assert_true(str_parse_share(cases[i].text, &amount));
		assert_true(amount == cases[i].amount && str_share_of(amount, 1000) == cases[i].of_1000);
		str_format_share(amount, text);
		assert_string_equal(text, cases[i].written);
	}
	for (size_t i = 0; i < ARRAY_SIZE(none); i++) {
		uint64_t amount = 7;

		if (str_parse_share(none[i], &amount))
			fail_msg("%s", none[i]);
	}
	str_format_share(STR_SHARE(100) | STR_SHARE_BYTES(UINT64_MAX), text);
	assert_string_equal(text, "65536.0 TiB, at most 100%");
	assert_true(str_share_of(STR_SHARE(50) | 499, 1000) == 499 && str_share_of(STR_SHARE(50) | 501, 1000) == 500);
	assert_true(str_share_of(STR_SHARE(50), 0) == 0 && str_share_of(STR_SHARE(100), UINT64_MAX) == UINT64_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(amounts_are_read),
		cmocka_unit_test(amounts_are_written),
		cmocka_unit_test(shares_are_read_and_written),
	};

	return cmocka_run_group_tests_name("bytes", tests, NULL, NULL);
}
