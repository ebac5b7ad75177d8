/* SPDX-License-Identifier: Apache-2.0 */

/* What a client sends and has not used yet: all of it counts, as long as it is there. */

#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "vcuda/driver_api.h"
#include "vcuda/server/arena.h"
#include "vcuda/server/handle.h"
#include "vcuda/server/quota.h"
#include "vcuda/server/request.h"
#include "vcuda/server/share.h"

enum { LIMIT = 1 << 20, PIECE = 60000 };

struct server server;
struct driver_api driver;

static struct start_quota quota;
static const struct start_orders orders = {.limit = UINT64_MAX};
static bool memory_is_out;

/* What the client shares. */
enum { ARENA = 0x10000, ARENA_BYTES = 4096 };

bool arena_has(uint64_t at, uint64_t bytes)
{
	return at >= ARENA && at <= ARENA + ARENA_BYTES && bytes <= ARENA + ARENA_BYTES - at;
}

void server_tell(enum start_event_kind kind, uint64_t number, const char *text)
{
	(void)kind, (void)number, (void)text;
}

void *__real_realloc(void *memory, size_t bytes);
void *__wrap_realloc(void *memory, size_t bytes);

void *__wrap_realloc(void *memory, size_t bytes)
{
	return memory_is_out ? NULL : __real_realloc(memory, bytes);
}

static int begin(void **state)
{
	(void)state;
	server.quota = &quota;
	server.orders = &orders;
	server.start.host_memory = LIMIT;
	memory_is_out = false;
	return 0;
}

/* The piece of a thread's upload at @at. */
static CUresult upload(struct request *q, uint32_t thread, uint64_t at)
{
	memset(q, 0, sizeof(*q));
	q->header.thread = thread;
	q->header.words = 2;
	q->header.bytes = 16 + PIECE;
	q->argument[0] = at;
	q->argument[1] = PIECE;
	return serve_wire_upload(q);
}

static void memory_that_was_not_to_be_had_is_not_counted(void **state)
{
	static struct request q;

	(void)state;
	memory_is_out = true;
	assert_int_equal(upload(&q, 0, 0), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(quota.locked[0], 0);
	memory_is_out = false;
	assert_int_equal(upload(&q, 0, 0), CUDA_SUCCESS);
	request_end_upload(&q);
	assert_int_equal(quota.locked[0], 0);
}

static void an_upload_counts_while_it_is_used(void **state)
{
	static struct request q, other;
	const char *data;
	uint64_t sent = 0;

	(void)state;
	while (upload(&q, 0, sent) == CUDA_SUCCESS)
		sent += PIECE;
	assert_true(sent >= LIMIT / 4);
	data = request_upload(&q, sent);
	assert_non_null(data);
	assert_null(request_upload(&q, sent + 1));
	assert_true(quota.locked[0] >= sent);
	/* Another thread has what is left. */
	for (sent = 0; upload(&other, 1, sent) == CUDA_SUCCESS;)
		sent += PIECE;
	assert_true(quota.locked[0] <= LIMIT);
	assert_int_equal(data[0], 0);
	request_end_upload(&q);
	assert_null(request_upload(&q, PIECE));
	request_end_upload(&other);
	assert_int_equal(quota.locked[0], 0);
}

/* ---- what a request works with when others may go on ---- */

static struct object_ref held[REQUEST_HOLDS];
static uint64_t ended;

void lane_leave(struct request *q)
{
	memcpy(held, q->wait.hold, sizeof(held));
}

static bool is_held(enum wire_type type, uint64_t real)
{
	for (int i = 0; i < REQUEST_HOLDS; i++)
		if (held[i].type == type && held[i].real == real)
			return true;
	return false;
}

bool bound_keeps(uint64_t array)
{
	(void)array;
	return false;
}

void bound_forget(uint64_t handle)
{
	(void)handle;
}

void share_held_end_key(enum share_kind kind, uint64_t key)
{
	(void)kind, (void)key;
}

void driver_memory_set_dirty(void)
{
}

static CUresult end(uint64_t real)
{
	ended = real;
	return CUDA_SUCCESS;
}

/* Another thread may end that, which is not the current one. */
static void what_ends_an_object_holds_its_context(void **state)
{
	const uint64_t context = handle_give(WIRE_CONTEXT, 0x1000, 0, 0),
		       other = handle_give(WIRE_CONTEXT, 0x2000, 0, 0);
	const uint64_t stream = handle_give(WIRE_STREAM, 0x1100, 0, context);
	static struct request q;

	(void)state;
	q.header.words = 1;
	q.header.bytes = 8;
	q.header.context = other;
	q.argument[0] = stream;
	assert_int_equal(request_end(&q, 0, WIRE_STREAM, end), CUDA_SUCCESS);
	assert_int_equal(ended, 0x1100);
	assert_true(is_held(WIRE_CONTEXT, 0x1000));
	assert_false(is_held(WIRE_STREAM, 0x1100));
	handle_drop(context);
	handle_drop(other);
}

static void a_function_is_held_with_all_that_it_ends_with(void **state)
{
	const uint64_t context = handle_give(WIRE_CONTEXT, 0x1000, 0, 0);
	const uint64_t library = handle_give(WIRE_LIBRARY, 0x3000, 0, 0),
		       module = handle_give(WIRE_MODULE, 0x3100, library, context),
		       function = handle_give(WIRE_FUNC, 0x3200, module, context);
	static struct request q;

	(void)state;
	request_hold(&q, function);
	lane_leave(&q);
	assert_true(is_held(WIRE_FUNC, 0x3200));
	assert_true(is_held(WIRE_MODULE, 0x3100));
	assert_true(is_held(WIRE_LIBRARY, 0x3000));
	assert_true(is_held(WIRE_CONTEXT, 0x1000));
	request_hold(&q, library);
	lane_leave(&q);
	assert_true(is_held(WIRE_LIBRARY, 0x3000));
	assert_false(is_held(WIRE_CONTEXT, 0x1000));
	handle_drop(library);
	handle_drop(context);
}

/* Of the host, without being counted there, and of a process that cannot be suspended any more. */
static void managed_memory_is_not_to_be_had_under_another_name(void **state)
{
	enum { PINNED = 1, MANAGED, DEVICE_LOCATION = 1 };
	CUmemAllocationProp properties = {.type = MANAGED, .location = {.type = DEVICE_LOCATION}};
	CUmemPoolProps pool = {.allocType = MANAGED, .location = {.type = DEVICE_LOCATION}};

	(void)state;
	server.start.gpu_count = 1;
	assert_int_equal(request_check_properties(&properties), CUDA_ERROR_NOT_SUPPORTED);
	assert_int_equal(request_check_pool(&pool), CUDA_ERROR_NOT_SUPPORTED);
	properties.type = PINNED;
	pool.allocType = PINNED;
	assert_int_equal(request_check_properties(&properties), CUDA_SUCCESS);
	assert_int_equal(request_check_pool(&pool), CUDA_SUCCESS);
}

/* ---- copies ---- */

enum { HOST = 1, DEVICE };

/* Of 8 bytes, which is how wide a box is that is @pitch bytes from row to row, and @height rows from plane to plane. */
static CUDA_MEMCPY3D box(size_t y, size_t z, size_t pitch, size_t height)
{
	return (CUDA_MEMCPY3D){.srcMemoryType = HOST,
			       .srcHost = (const void *)ARENA,
			       .srcY = y,
			       .srcZ = z,
			       .srcPitch = pitch,
			       .srcHeight = height,
			       .dstMemoryType = DEVICE,
			       .WidthInBytes = 8,
			       .Height = 1,
			       .Depth = 1};
}

static CUDA_MEMCPY3D turned(CUDA_MEMCPY3D box)
{
	return (CUDA_MEMCPY3D){.srcMemoryType = DEVICE,
			       .dstMemoryType = HOST,
			       .dstHost = (void *)(uintptr_t)box.srcHost,
			       .dstY = box.srcY,
			       .dstZ = box.srcZ,
			       .dstPitch = box.srcPitch,
			       .dstHeight = box.srcHeight,
			       .WidthInBytes = box.WidthInBytes,
			       .Height = box.Height,
			       .Depth = box.Depth};
}

static bool is_refused(CUDA_MEMCPY3D copy)
{
	CUDA_MEMCPY3D back = turned(copy);
	const CUresult r = request_check_copy(&copy);

	assert_int_equal(r, request_check_copy(&back));
	return r == CUDA_ERROR_INVALID_VALUE;
}

/* A driver that takes no height for the box's own would read and write wherever a corner says. */
static void rows_and_planes_behind_the_first_have_a_place_of_their_own(void **state)
{
	(void)state;
	assert_false(is_refused(box(0, 0, 0, 0)));
	assert_false(is_refused(box(1, 0, 8, 0)));
	assert_false(is_refused(box(ARENA_BYTES / 8 - 1, 0, 8, 0)));
	assert_true(is_refused(box(ARENA_BYTES / 8, 0, 8, 0)));
	assert_true(is_refused(box(1, 0, 0, 0)));
	assert_true(is_refused(box(1, 0, 4, 0)));
	assert_false(is_refused(box(0, 1, 8, 1)));
	assert_false(is_refused(box(0, 1, 8, 4)));
	assert_true(is_refused(box(0, ARENA_BYTES, 8, 0)));
	assert_true(is_refused(box(0, 1, 0, 1)));
	assert_true(is_refused(box(1, 1, 8, 1)));
	assert_true(is_refused(box(0, SIZE_MAX, 8, 0)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(managed_memory_is_not_to_be_had_under_another_name),
		cmocka_unit_test_setup(memory_that_was_not_to_be_had_is_not_counted, begin),
		cmocka_unit_test_setup(an_upload_counts_while_it_is_used, begin),
		cmocka_unit_test_setup(what_ends_an_object_holds_its_context, begin),
		cmocka_unit_test_setup(a_function_is_held_with_all_that_it_ends_with, begin),
		cmocka_unit_test_setup(rows_and_planes_behind_the_first_have_a_place_of_their_own, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
