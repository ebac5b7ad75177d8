/* SPDX-License-Identifier: Apache-2.0 */

/* What is known against GPUs, and what becomes of it. */

#include "unit.h"

#include <stdlib.h>

#include "cluster/devices.h"

static char one[] = "GPU-1", two[] = "GPU-2";

static bool error(struct troubles *troubles, char *gpu, unsigned xid, int64_t now)
{
	const struct driverd_event event = {DRIVERD_EVENT_XID, gpu, xid, NVML_NO_INSTANCE, NVML_NO_INSTANCE};

	return troubles_take(troubles, &event, now);
}

static bool state(struct troubles *troubles, char *gpu, enum nvml_state is, int64_t now)
{
	const struct driverd_event event = {DRIVERD_EVENT_STATE, gpu, is, NVML_NO_INSTANCE, NVML_NO_INSTANCE};

	return troubles_take(troubles, &event, now);
}

static void expect_list(const struct troubles *troubles, int64_t now, const char *expected)
{
	_cleanup_free_ char *list = NULL;

	assert_int_equal(troubles_list(troubles, now, &list), 0);
	assert_string_equal(list, expected);
}

static void an_error_is_known_until_the_driver_says_that_nothing_is_to_be_done(void **unused)
{
	struct troubles troubles = {0};

	(void)unused;
	assert_true(error(&troubles, one, 79, 1000));
	assert_non_null(troubles_find(&troubles, one, -1, -1));
	assert_null(troubles_find(&troubles, two, -1, -1));
	assert_null(troubles_find(&troubles, NULL, -1, -1));
	/* It may not know it yet, or not say it. */
	assert_false(state(&troubles, one, NVML_STATE_WELL, 1100));
	assert_false(state(&troubles, one, NVML_STATE_UNKNOWN, 9000));
	assert_false(state(&troubles, two, NVML_STATE_WELL, 9000));
	assert_non_null(troubles_find(&troubles, one, -1, -1));
	assert_true(state(&troubles, one, NVML_STATE_WELL, 9000));
	assert_null(troubles_find(&troubles, one, -1, -1));
	assert_int_equal(troubles.count, 0);
}

static void what_a_program_did_wrong_is_not_known_against_a_gpu(void **unused)
{
	static const unsigned of_programs[] = {13, 31, 43, 45, 68, 109},
			      others[] = {48, 63, 74, 79, 92, 94, 95, 119, 999};
	struct troubles troubles = {0};

	(void)unused;
	for (size_t i = 0; i < sizeof(of_programs) / sizeof(of_programs[0]); i++)
		assert_false(error(&troubles, one, of_programs[i], 0));
	assert_int_equal(troubles.count, 0);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		assert_true(error(&troubles, one, others[i], 0));
	assert_int_equal(troubles.count, 1);
}

static void an_error_of_a_part_is_of_no_other_part(void **unused)
{
	const struct driverd_event event = {DRIVERD_EVENT_XID, one, 94, 2, 1};
	struct troubles troubles = {0};
	_cleanup_free_ char *text = NULL;

	(void)unused;
	assert_true(troubles_take(&troubles, &event, 0));
	assert_non_null(troubles_find(&troubles, one, 2, 1));
	assert_null(troubles_find(&troubles, one, 2, 0));
	assert_null(troubles_find(&troubles, one, -1, -1));
	assert_int_equal(troubles_print(&troubles, &text), 0);
	assert_string_equal(text, "GPU-1 (part 2/1) cannot be used: Xid 94");
	/* The others of its GPU go on being watched. */
	expect_list(&troubles, 100000, "");
}

/* NVML names a compute instance only where it knows it. */
static void an_error_of_a_gpu_instance_is_of_all_in_it(void **unused)
{
	const struct driverd_event event = {DRIVERD_EVENT_XID, one, 94, 2, NVML_NO_INSTANCE};
	struct troubles troubles = {0};
	_cleanup_free_ char *text = NULL;

	(void)unused;
	assert_true(troubles_take(&troubles, &event, 0));
	assert_non_null(troubles_find(&troubles, one, 2, 0));
	assert_non_null(troubles_find(&troubles, one, 2, 1));
	assert_null(troubles_find(&troubles, one, 3, 0));
	assert_null(troubles_find(&troubles, one, -1, -1));
	assert_int_equal(troubles_print(&troubles, &text), 0);
	assert_string_equal(text, "GPU-1 (part 2) cannot be used: Xid 94");
}

static void a_gpu_that_is_to_be_reset_is_let_go_of(void **unused)
{
	struct troubles troubles = {0};
	_cleanup_free_ char *text = NULL;

	(void)unused;
	assert_true(error(&troubles, one, 79, 1000));
	expect_list(&troubles, 2000, "");
	assert_true(state(&troubles, one, NVML_STATE_RESET, 3000));
	assert_false(state(&troubles, one, NVML_STATE_RESET, 3000));
	expect_list(&troubles, 3000, one);
	assert_true(state(&troubles, two, NVML_STATE_LOST, 3000));
	expect_list(&troubles, 3000, "GPU-1,GPU-2");
	assert_int_equal(troubles_print(&troubles, &text), 0);
	assert_string_equal(text,
			    "GPU-1 cannot be used: Xid 79, reset required; GPU-2 cannot be used: fallen off the bus");
	/* Where the driver does not say what is to be done, it is let go of, too. */
	troubles.count = 0;
	assert_true(error(&troubles, two, 48, 0));
	expect_list(&troubles, 6000, two);
}

static void what_is_no_event_is_passed_over(void **unused)
{
	static char other[RESOURCE_NAME_MAX + 2], gpus[TROUBLES_MAX + 1][16];
	struct troubles troubles = {0};

	(void)unused;
	memset(other, 'x', sizeof(other) - 1);
	assert_false(error(&troubles, NULL, 79, 0));
	assert_false(error(&troubles, other, 79, 0));
	assert_false(state(&troubles, one, NVML_STATES, 0));
	assert_int_equal(troubles.count, 0);
	for (int i = 0; i <= TROUBLES_MAX; i++) {
		(void)snprintf(gpus[i], sizeof(gpus[i]), "GPU-%d", i);
		assert_int_equal(error(&troubles, gpus[i], 79, 0), i < TROUBLES_MAX);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_error_is_known_until_the_driver_says_that_nothing_is_to_be_done),
		cmocka_unit_test(what_a_program_did_wrong_is_not_known_against_a_gpu),
		cmocka_unit_test(an_error_of_a_part_is_of_no_other_part),
		cmocka_unit_test(an_error_of_a_gpu_instance_is_of_all_in_it),
		cmocka_unit_test(a_gpu_that_is_to_be_reset_is_let_go_of),
		cmocka_unit_test(what_is_no_event_is_passed_over),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
