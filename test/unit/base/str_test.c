/* SPDX-License-Identifier: Apache-2.0 */

#include "unit.h"

#include "base/str.h"

static void test_below(void **state)
{
	(void)state;
	assert_true(str_is_below("/a/b", "/a/b") && str_is_below("/a/b/c", "/a/b") && str_is_below("/a/b/c", "/a/b/"));
	assert_true(str_is_below("/a", "/") && str_is_below("/", "/"));
	assert_false(str_is_below("/a/bc", "/a/b") || str_is_below("/a", "/a/b") || str_is_below("/a/bc/d", "/a/b"));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_below),
	};

	return cmocka_run_group_tests_name("str", tests, NULL, NULL);
}
