/* SPDX-License-Identifier: Apache-2.0 */

#include "unit.h"

#include "model/version.h"

static void versions(void **state)
{
	static const struct {
		const char *text;
		struct version version;
	} cases[] = {
		{"0", {{0}, 1}},
		{"8", {{8}, 1}},
		{"7.5", {{7, 5}, 2}},
		{"v11.6", {{11, 6}, 2}},
		{"9.0.116", {{9, 0, 116}, 3}},
		{"470.57.02", {{470, 57, 2}, 3}},
		{"31.0.15.2849", {{31, 0, 15, 2849}, 4}},
		{"4294967295.4294967295.4294967295", {{4294967295, 4294967295, 4294967295}, 3}},
		{"12.2.0-1", {{12, 2, 0}, 3}},
		{"12.2.0-rc1+build.7", {{12, 2, 0}, 3}},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct version version;

		if (!version_read(cases[i].text, strlen(cases[i].text), &version) ||
		    version.count != cases[i].version.count || version_compare(&version, &cases[i].version) != 0)
			fail_msg("\"%s\"", cases[i].text);
	}
}

static void near_misses(void **state)
{
	static const char *const cases[] = {
		"",
		"v",
		"foo",
		"foo.5.10",
		"vv9",
		"V9",
		" 9",
		"9 ",
		"9.",
		".9",
		".5.10",
		"9..0",
		"9.0.",
		"9.0.116.",
		"9.0.116.50.1",
		"9.0.116.50-1",
		"9.0.116foo",
		"9.0.116-",
		"9.0.116-\n",
		"9.0-1",
		"9-1",
		"7.foo",
		"9.0.bar",
		"-9",
		"+9",
		"9.-1",
		"-9.1.116",
		"1e1",
		"11.x",
		"0x10",
		"4294967296",
		"9.4294967296",
		"18446744073709551617",
		"99999999999999999999999999",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct version version;

		if (version_read(cases[i], strlen(cases[i]), &version))
			fail_msg("\"%s\" was accepted", cases[i]);
	}
}

static void order(void **state)
{
	static const struct {
		const char *low, *high;
	} cases[] = {
		{"9", "10"},        {"12.4", "12.10"}, {"470.57", "470.57.2"}, {"1.4294967294", "1.4294967295"},
		{"0.0.0.1", "0.1"},
	};
	struct version a, b;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_true(version_read(cases[i].low, strlen(cases[i].low), &a));
		assert_true(version_read(cases[i].high, strlen(cases[i].high), &b));
		if (version_compare(&a, &b) >= 0 || version_compare(&b, &a) <= 0)
			fail_msg("%s and %s", cases[i].low, cases[i].high);
	}
	assert_true(version_read("470", 3, &a) && version_read("470.0.00", 8, &b));
	assert_int_equal(version_compare(&a, &b), 0);
	/* What lies behind the length is somebody else's. */
	assert_true(version_read("12.4,driver", 4, &a));
	assert_int_equal(a.parts[1], 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(versions),
		cmocka_unit_test(near_misses),
		cmocka_unit_test(order),
	};

	return cmocka_run_group_tests_name("version", tests, NULL, NULL);
}
