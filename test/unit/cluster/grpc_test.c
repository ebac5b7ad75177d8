/* SPDX-License-Identifier: Apache-2.0 */

/* Messages of gRPC, cut anywhere. */

#include "unit.h"

#include "cluster/grpc.h"

static const uint8_t hello[] = {0, 0, 0, 0, 5, 'h', 'e', 'l', 'l', 'o'};

static void test_any_cut(void **state)
{
	(void)state;
	for (size_t cut = 0; cut <= sizeof(hello); cut++) {
		size_t held = 0;
		struct frame frame = {.held = &held};

		assert_int_equal(frame_read(&frame, hello, cut), GRPC_OK);
		assert_int_equal(frame_is_whole(&frame), cut == sizeof(hello));
		assert_int_equal(frame_read(&frame, hello + cut, sizeof(hello) - cut), GRPC_OK);
		assert_true(frame_is_whole(&frame));
		assert_int_equal(frame.size, 5);
		assert_memory_equal(frame.message, "hello", 5);
		assert_int_equal(held, 5);
		frame_clear(&frame);
		assert_int_equal(held, 0);
	}
}

static void test_empty(void **state)
{
	static const uint8_t empty[FRAME_HEAD] = {0};
	struct frame frame = {0};

	(void)state;
	assert_false(frame_is_whole(&frame));
	assert_int_equal(frame_read(&frame, empty, sizeof(empty)), GRPC_OK);
	assert_true(frame_is_whole(&frame));
	assert_int_equal(frame.size, 0);
	frame_clear(&frame);
}

static void test_refused(void **state)
{
	static const struct {
		uint8_t bytes[FRAME_HEAD + 2];
		size_t size;
		int code;
	} cases[] = {
		{{1, 0, 0, 0, 1, 'x'}, 6, GRPC_UNIMPLEMENTED}, /* compressed */
		{{0, 0, 0, 0, 1, 'x', 'y'}, 7, GRPC_INTERNAL}, /* and a byte more */
		{{0, 0, 2, 0, 1}, 5, GRPC_RESOURCE_EXHAUSTED}, /* one above GRPC_MESSAGE_MAX */
		{{0, 0xff, 0xff, 0xff, 0xff}, 5, GRPC_RESOURCE_EXHAUSTED},
		{{0, 0, 2, 0, 0}, 5, GRPC_OK},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct frame frame = {0};

		assert_int_equal(frame_read(&frame, cases[i].bytes, cases[i].size), cases[i].code);
		frame_clear(&frame);
	}
}

/* What all peers together make us keep. */
static void test_held(void **state)
{
	static const uint8_t head[FRAME_HEAD] = {0, 0, 2, 0, 0};
	struct frame frames[GRPC_HELD_MAX / GRPC_MESSAGE_MAX + 1];
	size_t held = 0, last = ARRAY_SIZE(frames) - 1;

	(void)state;
	for (size_t i = 0; i <= last; i++) {
		frames[i] = (struct frame){.held = &held};
		assert_int_equal(frame_read(&frames[i], head, sizeof(head)),
				 i < last ? GRPC_OK : GRPC_RESOURCE_EXHAUSTED);
	}
	frame_clear(&frames[0]);
	frame_clear(&frames[last]);
	assert_int_equal(frame_read(&frames[0], head, sizeof(head)), GRPC_OK);
	for (size_t i = 0; i <= last; i++)
		frame_clear(&frames[i]);
	assert_int_equal(held, 0);
}

static void test_new(void **state)
{
	_cleanup_free_ uint8_t *frame = frame_new(0x010203);
	static const uint8_t head[FRAME_HEAD] = {0, 0, 1, 2, 3};

	(void)state;
	assert_non_null(frame);
	assert_memory_equal(frame, head, sizeof(head));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_any_cut), cmocka_unit_test(test_empty), cmocka_unit_test(test_refused),
		cmocka_unit_test(test_held),    cmocka_unit_test(test_new),
	};

	return cmocka_run_group_tests_name("grpc", tests, NULL, NULL);
}
