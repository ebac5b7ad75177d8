/* SPDX-License-Identifier: Apache-2.0 */

/* What a client sends and has not used yet: all of it counts, as long as it is there. */

#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "vcuda/driver_api.h"
#include "vcuda/server/arena.h"
#include "vcuda/server/quota.h"
#include "vcuda/server/request.h"

enum { LIMIT = 1 << 20, PIECE = 60000 };

struct server server;
struct driver_api driver;

static struct start_quota quota;
static const struct start_orders orders = {.limit = UINT64_MAX};
static bool memory_is_out;

bool arena_has(uint64_t at, uint64_t bytes)
{
	(void)at, (void)bytes;
	return false;
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(memory_that_was_not_to_be_had_is_not_counted, begin),
		cmocka_unit_test_setup(an_upload_counts_while_it_is_used, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
