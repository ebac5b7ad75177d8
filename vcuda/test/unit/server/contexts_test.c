/* SPDX-License-Identifier: Apache-2.0 */

/* Contexts: what other threads of a client find of one that is being made. */

#include "unit.h"

#include <string.h>

#include "vcuda/driver_api.h"
#include "vcuda/server/driver.h"
#include "vcuda/server/handle.h"
#include "vcuda/server/quota.h"
#include "vcuda/server/request.h"

CUresult serve_cuCtxCreate_v2(struct request *q);
CUresult serve_cuCtxDestroy_v2(struct request *q);
CUresult serve_cuDevicePrimaryCtxRetain(struct request *q);
CUresult serve_cuDevicePrimaryCtxRelease_v2(struct request *q);
CUresult serve_cuDevicePrimaryCtxReset_v2(struct request *q);

static struct start_quota quota;
static const struct start_orders orders = {.limit = UINT64_MAX};
static struct start_turns turns;
static struct wire shared;

void lane_leave(struct request *q)
{
	(void)q;
}

void lane_forget_context(void)
{
}

static uint64_t made, ended;
static CUresult chosen;

/* Meanwhile another thread gives the devices other numbers. */
static void choose(void)
{
	static struct request q;

	q.header.words = 1;
	q.header.bytes = 16;
	q.argument[0] = 1;
	q.argument[1] = 1;
	chosen = serve_kinds[WIRE_CHOOSE].serve(&q);
}

static CUresult make(CUcontext *ret, unsigned flags, CUdevice device)
{
	(void)flags, (void)device;
	choose();
	*ret = 0x1000 + 0x100 * made++;
	return CUDA_SUCCESS;
}

static CUresult retain(CUcontext *ret, CUdevice device)
{
	return make(ret, 0, device);
}

static CUresult release(CUdevice device)
{
	(void)device;
	ended++;
	return CUDA_SUCCESS;
}

static CUresult destroy(CUcontext context)
{
	(void)context;
	ended++;
	return CUDA_SUCCESS;
}

static CUresult set_current(CUcontext context)
{
	(void)context;
	return CUDA_SUCCESS;
}

static CUresult pop_current(CUcontext *ret)
{
	*ret = 0;
	return CUDA_SUCCESS;
}

static CUresult get_device(CUdevice *ret)
{
	*ret = 0;
	return CUDA_SUCCESS;
}

static CUresult get_attribute(int *ret, CUdevice_attribute attribute, CUdevice device)
{
	(void)attribute, (void)device;
	*ret = 1;
	return CUDA_SUCCESS;
}

/* What another thread does right before the context is found; what it is answered right after. */
static void (*before)(void);
static CUresult meanwhile;

static int begin(void **state)
{
	(void)state;
	server.quota = &quota;
	server.orders = &orders;
	server.turns = &turns;
	server.wire = &shared;
	server.start.gpu_count = 2;
	server.granted[1] = 1;
	driver.cuCtxCreate_v2 = make;
	driver.cuCtxDestroy_v2 = destroy;
	driver.cuCtxSetCurrent = set_current;
	driver.cuCtxPopCurrent_v2 = pop_current;
	driver.cuCtxGetDevice = get_device;
	driver.cuDeviceGetAttribute = get_attribute;
	driver.cuDevicePrimaryCtxRetain = retain;
	driver.cuDevicePrimaryCtxRelease_v2 = release;
	driver.cuDevicePrimaryCtxReset_v2 = release;
	before = NULL;
	made = ended = 0;
	return 0;
}

static struct request *ask(unsigned words, uint64_t first)
{
	static struct request q;

	memset(&q, 0, sizeof(q));
	q.header.words = (uint16_t)words;
	q.header.bytes = words * 8;
	q.argument[0] = first;
	return &q;
}

/* The next handle, as any client can work it out. */
static uint64_t guessed;
static bool found, fits;

static void guess(void)
{
	const uint64_t last = handle_give(WIRE_EVENT, 0x7000, 0, 0);

	guessed = wire_handle(WIRE_CONTEXT, handle_table[wire_handle_index(last)].generation + 1,
			      wire_handle_index(last), 0);
	handle_drop(last);
}

/* When what the driver has taken for the new context is counted. */
bool __wrap_driver_memory_fits(void);

bool __wrap_driver_memory_fits(void)
{
	uint64_t real;

	found = handle_look(guessed, WIRE_CONTEXT, &real);
	return fits;
}

bool __wrap_driver_memory_is_known(void);

bool __wrap_driver_memory_is_known(void)
{
	return true;
}

void __real_handle_show(uint64_t handle);
void __wrap_handle_show(uint64_t handle);

void __wrap_handle_show(uint64_t handle)
{
	static struct request q;

	if (before)
		before();
	__real_handle_show(handle);
	q.header.words = 1;
	q.header.bytes = 8;
	q.argument[0] = guessed;
	meanwhile = serve_cuCtxDestroy_v2(&q);
}

/* Before any other: no handle was ever given. */
static void devices_keep_their_numbers_while_one_is_made(void **state)
{
	(void)state;
	fits = true;
	chosen = CUDA_SUCCESS;
	assert_int_equal(serve_cuDevicePrimaryCtxRetain(ask(1, 0)), CUDA_SUCCESS);
	assert_int_equal(chosen, CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(server.granted[0], 0);
	assert_int_equal(serve_cuDevicePrimaryCtxRelease_v2(ask(1, 0)), CUDA_SUCCESS);
}

static void one_that_is_not_counted_yet_is_not_found(void **state)
{
	struct request *q = ask(2, 0);

	(void)state;
	guess();
	fits = false;
	assert_int_equal(serve_cuCtxCreate_v2(q), CUDA_ERROR_OUT_OF_MEMORY);
	assert_false(found);
	assert_int_equal(ended, 1);
	assert_int_equal(quota.used[0], 0);
	/* The guess was right. */
	guess();
	fits = true;
	assert_int_equal(serve_cuCtxCreate_v2(ask(2, 0)), CUDA_SUCCESS);
	assert_false(found);
	assert_int_equal(*(uint64_t *)q->reply, guessed);
	assert_int_equal(meanwhile, CUDA_SUCCESS);
	assert_int_equal(ended, 2);
}

static void a_primary_one_is_not_destroyed_as_soon_as_it_is_found(void **state)
{
	struct request *q = ask(1, 0);

	(void)state;
	guess();
	fits = true;
	assert_int_equal(serve_cuDevicePrimaryCtxRetain(q), CUDA_SUCCESS);
	assert_int_equal(*(uint64_t *)q->reply, guessed);
	assert_int_equal(meanwhile, CUDA_ERROR_INVALID_CONTEXT);
	assert_int_equal(ended, 0);
	assert_int_equal(serve_cuDevicePrimaryCtxRelease_v2(ask(1, 0)), CUDA_SUCCESS);
	assert_int_equal(ended, 1);
}

static CUresult released, was_reset;

static void end_primary(void)
{
	static struct request q;

	q.header.words = 1;
	q.header.bytes = 8;
	released = serve_cuDevicePrimaryCtxRelease_v2(&q);
	was_reset = serve_cuDevicePrimaryCtxReset_v2(&q);
}

static void a_primary_one_is_not_released_before_it_is_found(void **state)
{
	uint64_t real;

	(void)state;
	guess();
	fits = true;
	before = end_primary;
	assert_int_equal(serve_cuDevicePrimaryCtxRetain(ask(1, 0)), CUDA_SUCCESS);
	assert_int_equal(released, CUDA_ERROR_INVALID_CONTEXT);
	assert_int_equal(was_reset, CUDA_ERROR_INVALID_CONTEXT);
	assert_int_equal(ended, 0);
	assert_true(handle_look(guessed, WIRE_CONTEXT, &real));
	assert_int_equal(serve_cuDevicePrimaryCtxRelease_v2(ask(1, 0)), CUDA_SUCCESS);
	assert_int_equal(ended, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(devices_keep_their_numbers_while_one_is_made, begin),
		cmocka_unit_test_setup(one_that_is_not_counted_yet_is_not_found, begin),
		cmocka_unit_test_setup(a_primary_one_is_not_destroyed_as_soon_as_it_is_found, begin),
		cmocka_unit_test_setup(a_primary_one_is_not_released_before_it_is_found, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
