/* SPDX-License-Identifier: Apache-2.0 */

/* Which kernels preempt themselves, by what they say of themselves. */

#include "unit.h"

#include "base/str.h"
#include "guard/helper.h"

static void kernels_that_preempt_themselves_are_known(void **state)
{
	static const struct {
		const char *version, *modes, *why;
	} cases[] = {
		{"#1 SMP Debian 5.10.1-1 (2024-01-01)", NULL, NULL},
		{"#1 SMP Debian 5.10.1-1 (2024-01-01)", "none voluntary (full)", NULL},
		{"#1 SMP PREEMPT Wed Jan 1", "none (voluntary) full", "(uname -v)"},
		{"#1 SMP PREEMPT_RT Debian 6.12", NULL, "(uname -v)"},
		{"#1 SMP PREEMPT_LAZY Debian 7.0", NULL, "(uname -v)"},
		{"#1 SMP PREEMPT_DYNAMIC Debian 6.12", "none (voluntary) full lazy\n", NULL},
		{"#1 SMP PREEMPT_DYNAMIC Debian 6.12", "(none) voluntary full lazy\n", NULL},
		{"#1 SMP PREEMPT_DYNAMIC Debian 6.12", "none voluntary (full) lazy\n", "itself (full"},
		{"#1 SMP PREEMPT_DYNAMIC Debian 7.2", "full (lazy)\n", "itself (lazy"},
		{"#1 SMP PREEMPT_DYNAMIC", "(other)", "itself (other"},
		{"#1 SMP PREEMPT_DYNAMIC", NULL, "cannot be read"},
		{"#1 SMP PREEMPT_DYNAMIC", "", "cannot be read"},
		{"#1 SMP PREEMPT_DYNAMIC", "none voluntary full", "cannot be read"},
		{"#1 SMP PREEMPT_DYNAMIC", "() none", "cannot be read"},
		{"#1 SMP PREEMPT_DYNAMIC", "none (voluntary", "cannot be read"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_free_ char *why = NULL;

		assert_int_equal(preempt_classify(cases[i].version, cases[i].modes, &why), 0);
		if (cases[i].why)
			assert_true(why && strstr(why, cases[i].why));
		else
			assert_null(why);
	}
}

/* Whatever runs us, an answer comes, and the same one twice. */
static void the_running_kernel_is_judged(void **state)
{
	_cleanup_free_ char *first = NULL, *second = NULL;

	(void)state;
	assert_int_equal(preempt_check(&first), 0);
	assert_int_equal(preempt_check(&second), 0);
	assert_string_equal(first ? first : "", second ? second : "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kernels_that_preempt_themselves_are_known),
		cmocka_unit_test(the_running_kernel_is_judged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
