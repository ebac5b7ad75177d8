/* SPDX-License-Identifier: Apache-2.0 */

#include "unit.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/str.h"
#include "vcuda/protocol/control.h"
#include "vcuda_rpc.h"

static struct vcudad_gpu gpus[] = {{(char *)"GPU-1", (char *)"0000:01:00.0", (char *)"One"},
				   {(char *)"GPU-2", (char *)"", (char *)""}};
static const struct vcudad_request wish = {.id = (char *)"box",
					   .pid = 42,
					   .gpus = {ARRAY_SIZE(gpus), gpus},
					   .library = (char *)"/lib/libcuda.so.1",
					   .limits = {.memory = 8ULL << 30,
						      .host_memory = 4ULL << 30,
						      .max_clients = 16,
						      .idle = 600,
						      .share = 300,
						      .balance = 60}};

struct peers {
	int ours, theirs;
};

static void peers_open(struct peers *peers)
{
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair), 0);
	*peers = (struct peers){pair[0], pair[1]};
}

static void peers_close(struct peers *peers)
{
	(void)close(peers->ours);
	(void)close(peers->theirs);
}

/* The bytes of a call, as whoever asks sends them: the answer to it is broken. */
static size_t record_call(unsigned procedure, const void *arguments, unsigned char *ret, size_t max)
{
	char reply[1024] = {0};
	struct peers peers;
	ssize_t size;

	peers_open(&peers);
	assert_int_equal(write(peers.theirs, reply, 1), 1);
	assert_int_equal(shutdown(peers.theirs, SHUT_WR), 0);
	assert_int_equal(control_ask(peers.ours, procedure, arguments, reply), -EPIPE);
	size = read(peers.theirs, ret, max);
	assert_true(size > CONTROL_MARK);
	peers_close(&peers);
	return (size_t)size;
}

static void a_call_arrives_as_it_was_sent(void **state)
{
	unsigned char bytes[CONTROL_CALL_MAX];
	size_t size = record_call(VCUDAD_GRANT, &wish, bytes, sizeof(bytes));
	struct control_call call = {0};
	const struct vcudad_request *got;

	(void)state;
	assert_int_equal(control_read_mark(bytes, CONTROL_CALL_MAX), size - CONTROL_MARK);
	assert_true(control_read_call(bytes + CONTROL_MARK, size - CONTROL_MARK, &call));
	assert_int_equal(call.procedure, VCUDAD_GRANT);
	got = call.arguments;
	assert_string_equal(got->id, "box");
	assert_int_equal(got->pid, 42);
	assert_int_equal(got->gpus.gpus_len, 2);
	assert_string_equal(got->gpus.gpus_val[1].uuid, "GPU-2");
	assert_string_equal(got->library, "/lib/libcuda.so.1");
	assert_memory_equal(&got->limits, &wish.limits, sizeof(wish.limits));
	control_call_clear(&call);
}

static void a_call_that_is_cut_or_longer_is_none(void **state)
{
	unsigned char bytes[CONTROL_CALL_MAX];
	size_t size = record_call(VCUDAD_GRANT, &wish, bytes, sizeof(bytes)) - CONTROL_MARK;

	(void)state;
	for (size_t length = 0; length <= size + 4; length++) {
		struct control_call call = {0};

		assert_int_equal(control_read_call(bytes + CONTROL_MARK, length, &call), length == size);
		control_call_clear(&call);
	}
}

/* Each byte of a call is made each of some others: nothing is read or freed that was not there. */
static void a_damaged_call_harms_nobody(void **state)
{
	static const unsigned char values[] = {0x00, 0x01, 0x7f, 0x80, 0xff};
	unsigned char bytes[CONTROL_CALL_MAX];
	size_t size = record_call(VCUDAD_GRANT, &wish, bytes, sizeof(bytes)) - CONTROL_MARK, read = 0;

	(void)state;
	for (size_t i = 0; i < size; i++)
		for (size_t j = 0; j < ARRAY_SIZE(values); j++) {
			unsigned char old = bytes[CONTROL_MARK + i];
			struct control_call call = {0};

			bytes[CONTROL_MARK + i] = values[j];
			read += control_read_call(bytes + CONTROL_MARK, size, &call);
			control_call_clear(&call);
			bytes[CONTROL_MARK + i] = old;
		}
	assert_true(read > 0 && read < size * ARRAY_SIZE(values));
}

static void marks_are_of_whole_messages(void **state)
{
	(void)state;
	assert_int_equal(control_read_mark("\x80\x00\x00\x10", 100), 16);
	assert_int_equal(control_read_mark("\x80\x00\x00\x64", 100), 100);
	assert_int_equal(control_read_mark("\x80\x00\x00\x65", 100), 0);
	assert_int_equal(control_read_mark("\x00\x00\x00\x10", 100), 0);
	assert_int_equal(control_read_mark("\xff\xff\xff\xff", 100), 0);
}

static int ask_with_reply(unsigned procedure, const void *arguments, const void *bytes, size_t size, void *ret)
{
	struct peers peers;
	int r;

	peers_open(&peers);
	assert_int_equal(write(peers.theirs, bytes, size), (ssize_t)size);
	assert_int_equal(shutdown(peers.theirs, SHUT_WR), 0);
	r = control_ask(peers.ours, procedure, arguments, ret);
	peers_close(&peers);
	return r;
}

static void a_reply_arrives_as_it_was_written(void **state)
{
	struct vcudad_granted granted = {0, (char *)"", (char *)"/run/x"}, got = {0}, broken = {0};
	const struct control_call call = {.xid = VCUDAD_GRANT, .procedure = VCUDAD_GRANT},
				  stranger = {.xid = 77, .procedure = VCUDAD_GRANT};
	unsigned char bytes[1024];
	size_t size = control_write_reply(&call, &granted, bytes, sizeof(bytes));

	(void)state;
	assert_true(size > 0);
	assert_int_equal(control_write_reply(&call, &granted, bytes, size - 1), 0);
	size = control_write_reply(&call, &granted, bytes, sizeof(bytes));
	assert_int_equal(ask_with_reply(VCUDAD_GRANT, &wish, bytes, size, &got), 0);
	assert_string_equal(got.directory, "/run/x");
	control_free_reply(VCUDAD_GRANT, &got);
	assert_int_equal(ask_with_reply(VCUDAD_GRANT, &wish, bytes, size - 1, &broken), -EPIPE);
	size = control_write_reply(&stranger, &granted, bytes, sizeof(bytes));
	assert_int_equal(ask_with_reply(VCUDAD_GRANT, &wish, bytes, size, &broken), -EBADMSG);
	control_free_reply(VCUDAD_GRANT, &broken);
	broken = (struct vcudad_granted){0};
	size = control_write_reply(&call, NULL, bytes, sizeof(bytes));
	assert_int_equal(ask_with_reply(VCUDAD_GRANT, &wish, bytes, size, &broken), -EBADMSG);
	control_free_reply(VCUDAD_GRANT, &broken);
}

static void who_does_not_answer_is_waited_for_as_long_as_was_said(void **state)
{
	struct vcudad_granted granted = {0};
	const int64_t began = clock_now_ms();
	struct peers peers;

	(void)state;
	peers_open(&peers);
	assert_int_equal(control_ask_within(peers.ours, VCUDAD_GRANT, &wish, 50, &granted), -ETIMEDOUT);
	assert_between(clock_now_ms() - began, 50, CONTROL_PATIENCE_MS - 1000);
	peers_close(&peers);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_call_arrives_as_it_was_sent),
		cmocka_unit_test(a_call_that_is_cut_or_longer_is_none),
		cmocka_unit_test(a_damaged_call_harms_nobody),
		cmocka_unit_test(marks_are_of_whole_messages),
		cmocka_unit_test(a_reply_arrives_as_it_was_written),
		cmocka_unit_test(who_does_not_answer_is_waited_for_as_long_as_was_said),
	};

	return cmocka_run_group_tests_name("control", tests, NULL, NULL);
}
