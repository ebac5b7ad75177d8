/* SPDX-License-Identifier: Apache-2.0 */

#include "unit.h"

#include "vcuda/server/quota.h"
#include "vcuda/server/server.h"

enum { LIMIT = 1 << 20 };

struct server server;
static struct start_orders orders;
static uint64_t refused;
static int reports;

void server_tell(enum start_event_kind kind, uint64_t number, const char *text)
{
	(void)text;
	assert_int_equal(kind, START_EVENT_QUOTA);
	refused += number;
	reports++;
}

static int begin(void **state)
{
	static struct start_quota quota;

	(void)state;
	quota = (struct start_quota){0};
	orders = (struct start_orders){.limit = LIMIT};
	server = (struct server){.quota = &quota, .orders = &orders};
	refused = 0;
	return 0;
}

static void no_more_than_the_limit_is_taken(void **state)
{
	(void)state;
	assert_true(quota_take(LIMIT - 1));
	assert_int_equal(quota_left(), 1);
	assert_false(quota_take(2));
	assert_int_equal(refused, 2);
	assert_true(quota_take(1));
	assert_int_equal(quota_left(), 0);
	quota_give(LIMIT);
	assert_true(quota_take(LIMIT));
}

/* What three servers add for a moment comes to 2^64 and a little. */
static void a_sum_that_wraps_is_too_large(void **state)
{
	(void)state;
	server.quota->used[1] = LIMIT;
	server.quota->used[2] = UINT64_MAX / 2;
	server.quota->used[3] = UINT64_MAX / 2 - LIMIT / 2;
	assert_false(quota_take(LIMIT / 2 + 2));
	assert_int_equal(server.quota->used[0], 0);
	assert_int_equal(quota_left(), 0);
}

/* Nor does anything more than the limit get into the sum, where it would be refused others. */
static void what_is_more_than_the_limit_is_not_added(void **state)
{
	(void)state;
	server.quota->used[0] = LIMIT;
	assert_false(quota_take(LIMIT + 1));
	assert_false(quota_take(UINT64_MAX));
	assert_int_equal(server.quota->used[0], LIMIT);
	reports = 0;
	for (int i = 0; i < 100; i++)
		assert_false(quota_take(1));
	assert_true(reports <= 1);
	orders.limit = UINT64_MAX;
	assert_true(quota_take((uint64_t)1 << 50));
}

/* What the driver takes by itself is known apart, and one note of it becomes larger. */
static void what_the_driver_takes_is_known_apart(void **state)
{
	(void)state;
	assert_true(quota_take(4096));
	assert_true(quota_note(QUOTA_POINTER, 1, 4096, 7));
	assert_true(quota_take(512));
	assert_true(quota_note(QUOTA_CONTEXT, 7, 512, 7));
	quota_count(1024);
	assert_true(quota_note(QUOTA_CONTEXT, 7, 1024, 7));
	assert_int_equal(quota_reserved(), 1536);
	assert_int_equal(quota_noted(QUOTA_CONTEXT, 7), 1536);
	assert_int_equal(quota_counted(), 4096 + 1536);
	assert_true(quota_forget(QUOTA_CONTEXT, 7));
	assert_false(quota_forget(QUOTA_CONTEXT, 7));
	assert_int_equal(quota_reserved(), 0);
	assert_int_equal(quota_counted(), 4096);
	quota_forget_context(7);
	assert_int_equal(quota_counted(), 0);
}

/* One number for all servers of the container: each of its processes would have the whole otherwise. */
static void page_locked_memory_is_the_containers(void **state)
{
	(void)state;
	server.start.host_memory = LIMIT;
	server.quota->locked[1] = LIMIT - 1;
	assert_false(quota_lock(2));
	assert_int_equal(refused, 0);
	assert_true(quota_lock(1));
	assert_false(quota_lock(1));
	quota_unlock(1);
	assert_int_equal(server.quota->locked[0], 0);
	assert_int_equal(quota_left(), LIMIT);
}

static void what_was_noted_for_one_key_is_added_up(void **state)
{
	(void)state;
	assert_int_equal(quota_noted(QUOTA_HEAP, 7), 0);
	assert_true(quota_take(600));
	assert_true(quota_note(QUOTA_HEAP, 7, 500, 7));
	assert_true(quota_note(QUOTA_HEAP, 7, 40, 7));
	assert_true(quota_note(QUOTA_STACKS, 7, 50, 7));
	/* In the same place of the table. */
	assert_true(quota_note(QUOTA_HEAP, 7 + 4096ULL * 4096 * 4096, 10, 8));
	assert_int_equal(quota_noted(QUOTA_HEAP, 7), 540);
	quota_forget_context(7);
	assert_int_equal(quota_noted(QUOTA_HEAP, 7), 0);
	assert_int_equal(quota_noted(QUOTA_STACKS, 7), 0);
	assert_int_equal(quota_left(), LIMIT - 10);
	quota_forget_context(8);
	assert_int_equal(quota_left(), LIMIT);
}

/* Where it was given, and as long as a server that lives holds it. */
static void what_is_shared_counts_once(void **state)
{
	enum { TAKER = 9 };
	struct share *share = &server.quota->shares.place[0];

	(void)state;
	assert_false(quota_reap());
	assert_true(quota_take(600));
	assert_true(quota_note(QUOTA_POINTER, 7, 600, 7));
	server.quota->shares.used = 1;
	share->bytes = 600;
	share->state = SHARE_READY;
	share_hold(share, server.start.quota_slot);
	share_hold(share, TAKER);
	quota_empty_note(QUOTA_POINTER, 7);
	quota_give(600);
	assert_int_equal(quota_left(), LIMIT - 600);
	assert_int_equal(quota_noted(QUOTA_POINTER, 7), 0);
	assert_true(quota_forget(QUOTA_POINTER, 7));
	share_let_go(share, server.start.quota_slot);
	assert_int_equal(quota_left(), LIMIT - 600);
	assert_false(quota_take(LIMIT - 599));
	server.quota->client[TAKER] = 1234;
	assert_false(quota_reap());
	server.quota->client[TAKER] = 0;
	assert_true(quota_reap());
	assert_int_equal(quota_left(), LIMIT);
}

/* It makes no context, has no process id to say, or says nothing at all. */
static void what_a_client_without_a_name_shares_is_not_taken_back(void **state)
{
	enum { OTHER = 9 };
	struct share *share = &server.quota->shares.place[0];
	struct wire_usage usage = {0};

	(void)state;
	quota_begin();
	server.quota->shares.used = 1;
	share->bytes = LIMIT;
	share->state = SHARE_READY;
	share_hold(share, server.start.quota_slot);
	server.start.quota_slot = OTHER;
	assert_false(quota_reap());
	assert_false(quota_take(1));
	server.start.quota_slot = 0;
	quota_name_client(0);
	server.start.quota_slot = OTHER;
	assert_false(quota_reap());
	assert_false(quota_take(1));
	server.start.quota_slot = 0;
	quota_report(0, &usage);
	assert_int_equal(usage.count, 0);
	quota_use_gpu(0);
	quota_report(0, &usage);
	assert_int_equal(usage.count, 1);
	assert_int_equal(usage.process[0].gpus, 1);
}

/* Physical memory, whose handle and mappings hold it; and the same when it counts in a place that others share. */
static void what_is_held_counts_until_it_is_let_go(void **state)
{
	(void)state;
	assert_true(quota_take(600));
	assert_true(quota_note(QUOTA_PHYSICAL, 7, 600, 0));
	assert_false(quota_hold(QUOTA_PHYSICAL, 7, 1));
	assert_true(quota_forget(QUOTA_PHYSICAL, 7));
	assert_int_equal(quota_noted(QUOTA_PHYSICAL, 7), 600);
	assert_false(quota_hold(QUOTA_PHYSICAL, 7, 1));
	assert_false(quota_hold(QUOTA_PHYSICAL, 7, -1));
	quota_empty_note(QUOTA_PHYSICAL, 7);
	quota_give(600);
	assert_int_equal(quota_noted(QUOTA_PHYSICAL, 7), 0);
	assert_true(quota_hold(QUOTA_PHYSICAL, 7, -1));
	assert_false(quota_hold(QUOTA_PHYSICAL, 7, -1));
	assert_int_equal(quota_left(), LIMIT);
}

/* The lower one of both limits holds. */
static void the_hosts_memory_has_two_limits(void **state)
{
	(void)state;
	server.start.host_memory = 100;
	assert_true(quota_lock(60));
	assert_false(quota_lock(41));
	orders.locked_limit = 70;
	assert_true(quota_lock(10));
	assert_false(quota_lock(1));
	orders.locked_limit = 1000;
	assert_true(quota_lock(30));
	assert_false(quota_lock(1));
	quota_unlock(100);
	assert_int_equal(server.quota->locked[0], 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(no_more_than_the_limit_is_taken, begin),
		cmocka_unit_test_setup(a_sum_that_wraps_is_too_large, begin),
		cmocka_unit_test_setup(what_is_more_than_the_limit_is_not_added, begin),
		cmocka_unit_test_setup(what_the_driver_takes_is_known_apart, begin),
		cmocka_unit_test_setup(page_locked_memory_is_the_containers, begin),
		cmocka_unit_test_setup(what_is_shared_counts_once, begin),
		cmocka_unit_test_setup(what_a_client_without_a_name_shares_is_not_taken_back, begin),
		cmocka_unit_test_setup(what_is_held_counts_until_it_is_let_go, begin),
		cmocka_unit_test_setup(the_hosts_memory_has_two_limits, begin),
		cmocka_unit_test_setup(what_was_noted_for_one_key_is_added_up, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
