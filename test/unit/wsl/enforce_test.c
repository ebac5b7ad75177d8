/* SPDX-License-Identifier: Apache-2.0 */

/* How a choice of GPUs is held, by the administrator's wish, where nothing but that decides. */

#include "unit.h"

#include "base/str.h"
#include "model/adapter.h"
#include "wsl/internal.h"

/* An adapter without a LUID cannot be guarded, on whatever machine this runs. */
static const struct adapter chosen = {.same_device_count = 2}, second = {.same_device_count = 2},
			    npu = {.same_device_count = 2, .is_npu = true};

/* Return: of enforce_plan() for the first adapter of two. */
static int hold(enum choice_grade grade, struct plan *plan, struct err *err)
{
	const struct settings settings = {.choice = grade};
	const struct adapter *selected[] = {&chosen};

	return enforce_plan(&settings, selected, 1, plan, err);
}

static void all_gpus_are_no_choice(void **state)
{
	const struct adapter *selected[] = {&chosen, &npu, &second};
	const struct settings settings = {.choice = CHOICE_STRICT};
	struct plan plan = {0};

	(void)state;
	assert_false(enforce_is_choice(selected, 3));
	assert_true(enforce_is_choice(selected, 2));
	assert_false(enforce_is_choice(selected, 0));
	assert_int_equal(enforce_plan(&settings, selected, 3, &plan, NULL), 0);
	assert_null(plan.choice.grade);
	plan_clear(&plan);
}

static void what_is_wished_is_said(void **state)
{
	static const struct {
		enum choice_grade wish;
		const char *grade, *reason;
		size_t warnings;
	} cases[] = {
		{CHOICE_STORE, "store", "a program that asks /dev/dxg itself reaches every adapter", 0},
		{CHOICE_ENVIRONMENT, "environment", "variables name the chosen ones", 0},
		{CHOICE_AUTO, "environment", "no guard: an adapter has no LUID", 0},
		{CHOICE_GUARD, "environment", "no guard: an adapter has no LUID", 1},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct plan plan = {0};

		assert_int_equal(hold(cases[i].wish, &plan, NULL), 0);
		assert_string_equal(plan.choice.grade, cases[i].grade);
		assert_non_null(strstr(plan.choice.reason, cases[i].reason));
		assert_int_equal(plan.choice.luid_count, 0);
		assert_int_equal(plan.warnings.count, cases[i].warnings);
		plan_clear(&plan);
	}
}

static void strict_refuses_and_names_the_reason(void **state)
{
	struct plan plan = {0};
	struct err err = {0};

	(void)state;
	assert_int_equal(hold(CHOICE_STRICT, &plan, &err), CTR_GPU_E_GUARD);
	assert_non_null(strstr(err.text, "cannot be held on this host: an adapter has no LUID"));
	plan_clear(&plan);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_gpus_are_no_choice),
		cmocka_unit_test(what_is_wished_is_said),
		cmocka_unit_test(strict_refuses_and_names_the_reason),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
