/* SPDX-License-Identifier: Apache-2.0 */

#include "unit.h"

#include <pthread.h>
#include <unistd.h>

#include "vcuda/driver_api.h"
#include "vcuda/server/request.h"

struct server server;
struct driver_api driver;

static unsigned ended, pushed;

static CUresult end(uint64_t real)
{
	(void)real;
	ended++;
	return CUDA_SUCCESS;
}

static CUresult refuse(uint64_t real)
{
	(void)real;
	return CUDA_ERROR_UNKNOWN;
}

static CUresult push(CUcontext context)
{
	(void)context;
	pushed++;
	return CUDA_SUCCESS;
}

static CUresult pop(CUcontext *context)
{
	(void)context;
	pushed--;
	return CUDA_SUCCESS;
}

static void what_nobody_holds_ends_at_once(void **state)
{
	const struct object_ref hold = {WIRE_EVENT, 0x1000};

	(void)state;
	ended = 0;
	assert_int_equal(object_ref_end(hold, 0, end), CUDA_SUCCESS);
	assert_int_equal(ended, 1);
	assert_int_equal(object_ref_end(hold, 0, refuse), CUDA_ERROR_UNKNOWN);
	assert_true(object_ref_take(hold));
	object_ref_let_go(hold);
	assert_int_equal(object_ref_end(hold, 0, end), CUDA_SUCCESS);
	assert_int_equal(ended, 2);
}

static void the_last_holder_ends_it(void **state)
{
	const struct object_ref hold = {WIRE_STREAM, 0x2000}, other = {WIRE_EVENT, 0x2000};

	(void)state;
	ended = pushed = 0;
	driver.cuCtxPushCurrent_v2 = push;
	driver.cuCtxPopCurrent_v2 = pop;
	assert_true(object_ref_take(hold));
	assert_true(object_ref_take(hold));
	assert_int_equal(object_ref_end(hold, 0x3000, end), CUDA_SUCCESS);
	assert_false(object_ref_take(hold));
	assert_true(object_ref_take(other));
	object_ref_let_go(other);
	object_ref_let_go(hold);
	assert_int_equal(ended, 0);
	object_ref_let_go(hold);
	assert_int_equal(ended, 1);
	assert_int_equal(pushed, 0);
	/* What comes to its place is another. */
	assert_true(object_ref_take(hold));
	object_ref_let_go(hold);
	assert_int_equal(ended, 1);
}

static void *let_go_later(void *hold)
{
	(void)usleep(20000);
	ended++;
	object_ref_let_go(*(const struct object_ref *)hold);
	return NULL;
}

static void whoever_awaits_it_is_the_last(void **state)
{
	struct object_ref hold = {WIRE_CONTEXT, 0x4000};
	pthread_t thread;

	(void)state;
	ended = 0;
	assert_true(object_ref_take(hold));
	assert_int_equal(pthread_create(&thread, NULL, let_go_later, &hold), 0);
	object_ref_await(hold);
	assert_int_equal(ended, 1);
	assert_false(object_ref_take(hold));
	object_ref_forget(hold);
	assert_true(object_ref_take(hold));
	object_ref_let_go(hold);
	(void)pthread_join(thread, NULL);
}

static void nothing_is_held_without_a_type(void **state)
{
	const struct object_ref nothing = {WIRE_NULL, 0};

	(void)state;
	assert_true(object_ref_take(nothing));
	object_ref_let_go(nothing);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_nobody_holds_ends_at_once),
		cmocka_unit_test(the_last_holder_ends_it),
		cmocka_unit_test(whoever_awaits_it_is_the_last),
		cmocka_unit_test(nothing_is_held_without_a_type),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
