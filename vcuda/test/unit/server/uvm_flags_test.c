/* SPDX-License-Identifier: Apache-2.0 */

/* The first call to nvidia-uvm, as versions of it that know of other flags answer it. */

#include "unit.h"

#include <errno.h>

#include "vcuda/server/driver.h"

enum { INVALID = 0x1f, SHARING = 2 };

static uint64_t known, asked[8];
static unsigned calls;
static int fails;

static int answer(int fd, struct uvm_flags_begin *begin)
{
	assert_int_equal(fd, 7);
	asked[calls++] = begin->flags;
	if (fails) {
		errno = fails;
		return -1;
	}
	begin->status = begin->flags & ~known ? INVALID : 0;
	return 0;
}

static struct uvm_flags_begin begin_with(uint64_t knows, uint64_t flags)
{
	struct uvm_flags_begin begin = {.flags = flags, .status = 0x77};

	known = knows;
	calls = 0;
	assert_int_equal(uvm_flags_begin(7, &begin, answer), fails ? -1 : 0);
	return begin;
}

static void one_that_knows_both_is_asked_once(void **state)
{
	struct uvm_flags_begin begin = begin_with(7, 0);

	(void)state;
	assert_int_equal(calls, 1);
	assert_int_equal(begin.flags, 5);
	assert_int_equal(begin.status, 0);
}

static void an_older_one_has_hmm_switched_off(void **state)
{
	struct uvm_flags_begin begin = begin_with(3, SHARING);

	(void)state;
	assert_int_equal(calls, 2);
	assert_int_equal(asked[0], 7);
	assert_int_equal(begin.flags, 3);
	assert_int_equal(begin.status, 0);
}

static void one_that_knows_of_none_is_asked_as_the_driver_did(void **state)
{
	struct uvm_flags_begin begin = begin_with(SHARING, SHARING);

	(void)state;
	assert_int_equal(calls, 3);
	assert_int_equal(begin.flags, SHARING);
	assert_int_equal(begin.status, 0);
}

static void what_is_refused_in_any_case_is_the_drivers_to_see(void **state)
{
	struct uvm_flags_begin begin = begin_with(7, 8);

	(void)state;
	assert_int_equal(calls, 3);
	assert_int_equal(begin.flags, 8);
	assert_int_equal(begin.status, INVALID);
}

static void a_call_that_fails_is_not_made_again(void **state)
{
	(void)state;
	fails = ENOTTY;
	(void)begin_with(7, 0);
	assert_int_equal(errno, ENOTTY);
	assert_int_equal(calls, 1);
	fails = 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_that_knows_both_is_asked_once),
		cmocka_unit_test(an_older_one_has_hmm_switched_off),
		cmocka_unit_test(one_that_knows_of_none_is_asked_as_the_driver_did),
		cmocka_unit_test(what_is_refused_in_any_case_is_the_drivers_to_see),
		cmocka_unit_test(a_call_that_fails_is_not_made_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
