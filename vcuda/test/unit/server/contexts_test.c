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
CUresult serve_cuLibraryLoadData(struct request *q);
CUresult serve_wire_upload(struct request *q);

static struct start_quota quota;
static struct start_orders orders = {.limit = UINT64_MAX};
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

static CUcontext current;

static CUresult set_current(CUcontext context)
{
	current = context;
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
static void (*counting)(void); /* the same when what the driver has taken is counted */
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
	before = counting = NULL;
	orders.limit = UINT64_MAX;
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

	if (counting)
		counting();
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

static uint64_t library, loaded_in;

static CUresult get_module(CUmodule *ret, CUlibrary real)
{
	assert_int_equal(real, 0x8000);
	*ret = 0x8100;
	loaded_in = current;
	return CUDA_SUCCESS;
}

/* It is in all contexts that are found, which the new one is not. */
static void load_library(void)
{
	library = handle_give(WIRE_LIBRARY, 0x8000, 0, 0);
	loaded_in = 0;
}

/* Else the library's memory would be taken when the context first uses it, which is too late to refuse the client. */
static void a_library_that_is_loaded_while_one_is_made_is_in_it(void **state)
{
	struct request *q = ask(1, 0);

	(void)state;
	driver.cuLibraryGetModule = get_module;
	orders.limit = 1 << 30;
	server.gpu_bytes = 1 << 30;
	fits = true;
	before = load_library;
	assert_int_equal(serve_cuDevicePrimaryCtxRetain(q), CUDA_SUCCESS);
	assert_int_not_equal(loaded_in, 0);
	assert_int_equal(loaded_in, current);
	assert_int_equal(serve_cuDevicePrimaryCtxRelease_v2(ask(1, 0)), CUDA_SUCCESS);
	handle_drop(library);
}

static CUresult load(CUlibrary *ret, const void *code, CUjit_option *options, void **values, unsigned count,
		     CUlibraryOption *library_options, void **library_values, unsigned library_count)
{
	(void)code, (void)options, (void)values, (void)count;
	(void)library_options, (void)library_values, (void)library_count;
	*ret = 0x8000;
	return CUDA_SUCCESS;
}

static CUresult push_current(CUcontext context)
{
	current = context;
	return CUDA_SUCCESS;
}

static uint64_t shown;

static void show_context(void)
{
	shown = handle_give(WIRE_CONTEXT, 0x9000, 0, 0);
}

static void a_library_is_in_a_context_that_is_found_before_its_handle_is(void **state)
{
	static const char text[] = ".version 8.0";
	struct request *q = ask(2, 0);

	(void)state;
	server.start.host_memory = 1 << 20;
	q->argument[1] = sizeof(text);
	q->header.bytes = 16 + 16;
	memcpy(&q->argument[2], text, sizeof(text));
	assert_int_equal(serve_wire_upload(q), CUDA_SUCCESS);
	driver.cuLibraryLoadData = load;
	driver.cuLibraryGetModule = get_module;
	driver.cuCtxPushCurrent_v2 = push_current;
	orders.limit = 1 << 30;
	fits = true;
	loaded_in = 0;
	counting = show_context;
	assert_int_equal(serve_cuLibraryLoadData(ask(3, sizeof(text))), CUDA_SUCCESS);
	assert_int_equal(loaded_in, 0x9000);
	handle_drop(shown);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(devices_keep_their_numbers_while_one_is_made, begin),
		cmocka_unit_test_setup(one_that_is_not_counted_yet_is_not_found, begin),
		cmocka_unit_test_setup(a_primary_one_is_not_destroyed_as_soon_as_it_is_found, begin),
		cmocka_unit_test_setup(a_primary_one_is_not_released_before_it_is_found, begin),
		cmocka_unit_test_setup(a_library_that_is_loaded_while_one_is_made_is_in_it, begin),
		cmocka_unit_test_setup(a_library_is_in_a_context_that_is_found_before_its_handle_is, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
