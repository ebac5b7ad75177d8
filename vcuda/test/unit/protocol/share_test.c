/* SPDX-License-Identifier: Apache-2.0 */

#include "unit.h"

static void between(int step);
#define SHARE_BETWEEN(step) between(step)
#include "vcuda/protocol/share.h"

enum { GIVER = 3, TAKER = 200, BYTES = 4096 };

static struct shares shares;
static int comes, goes; /* at which step of another's */
static bool saw_ready;

static void between(int step)
{
	struct share *share = &shares.place[1];

	if (step == comes) {
		comes = 0;
		share_hold(share, TAKER);
		saw_ready = share->state == SHARE_READY;
	} else if (step == goes) {
		goes = 0;
		share_let_go(share, TAKER);
	}
}

static int begin(void **state)
{
	(void)state;
	memset(&shares, 0, sizeof(shares));
	comes = goes = 0;
	saw_ready = false;
	shares.used = 2;
	shares.place[1].bytes = BYTES;
	share_hold(&shares.place[1], GIVER);
	shares.place[1].state = SHARE_READY;
	return 0;
}

static void what_is_held_counts_until_the_last_lets_go(void **state)
{
	struct share *share = &shares.place[1];

	(void)state;
	share_hold(share, TAKER);
	share_let_go(share, GIVER);
	assert_int_equal(share_sum(&shares), BYTES);
	assert_int_equal(share->state, SHARE_READY);
	share_let_go(share, TAKER);
	assert_int_equal(share_sum(&shares), 0);
	assert_int_equal(share->state, 0);
}

static void a_server_that_was_killed_holds_nothing(void **state)
{
	(void)state;
	share_hold(&shares.place[1], TAKER);
	share_forget_slot(&shares, TAKER);
	assert_int_equal(share_sum(&shares), BYTES);
	share_forget_slot(&shares, TAKER);
	share_forget_slot(&shares, GIVER);
	assert_int_equal(share_sum(&shares), 0);
}

/* Before others could find it, or when it was about to free it. */
static void a_server_that_was_killed_amid_it_leaves_no_place_taken(void **state)
{
	struct share *share = &shares.place[0];

	(void)state;
	share->state = GIVER + 1;
	share->bytes = BYTES;
	share_forget_slot(&shares, GIVER);
	assert_int_equal(share->state, 0);
	assert_int_equal(share->bytes, 0);
	/* What another has taken meanwhile stays that one's. */
	shares.place[1].state = GIVER + 1;
	shares.place[1].bytes = BYTES;
	share_hold(&shares.place[1], TAKER);
	share_forget_slot(&shares, GIVER);
	assert_int_equal(shares.place[1].state, SHARE_READY);
	assert_int_equal(share_sum(&shares), BYTES);
}

static void a_sum_that_wraps_is_too_large(void **state)
{
	(void)state;
	shares.place[0].bytes = UINT64_MAX - 1;
	assert_int_equal(share_sum(&shares), UINT64_MAX);
}

static void no_more_places_are_looked_at_than_there_are(void **state)
{
	(void)state;
	shares.used = UINT32_MAX;
	assert_int_equal(share_count(&shares), SHARE_PLACES);
	assert_int_equal(share_sum(&shares), BYTES);
}

/* Comes before the last one frees the place, and has it. */
static void who_comes_before_it_is_freed_has_it(void **state)
{
	struct share *share = &shares.place[1];

	(void)state;
	comes = 1;
	share_let_go(share, GIVER);
	assert_true(saw_ready);
	assert_int_equal(share->state, SHARE_READY);
	assert_int_equal(share_sum(&shares), BYTES);
	share_let_go(share, TAKER);
	assert_int_equal(share_sum(&shares), 0);
}

/* Comes while it is about to be freed, sees that, and goes before or after it is given back. */
static void who_comes_while_it_is_freed_goes(void **state)
{
	struct share *share = &shares.place[1];

	(void)state;
	comes = 2;
	share_let_go(share, GIVER);
	assert_false(saw_ready);
	share_let_go(share, TAKER);
	assert_int_equal(share->state, 0);
	assert_int_equal(share_sum(&shares), 0);
	(void)begin(state);
	comes = 2;
	goes = 3;
	share_let_go(share, GIVER);
	assert_int_equal(share->state, 0);
	assert_int_equal(share_sum(&shares), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(what_is_held_counts_until_the_last_lets_go, begin),
		cmocka_unit_test_setup(a_server_that_was_killed_holds_nothing, begin),
		cmocka_unit_test_setup(a_server_that_was_killed_amid_it_leaves_no_place_taken, begin),
		cmocka_unit_test_setup(a_sum_that_wraps_is_too_large, begin),
		cmocka_unit_test_setup(no_more_places_are_looked_at_than_there_are, begin),
		cmocka_unit_test_setup(who_comes_before_it_is_freed_has_it, begin),
		cmocka_unit_test_setup(who_comes_while_it_is_freed_goes, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
