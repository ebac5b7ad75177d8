/* SPDX-License-Identifier: Apache-2.0 */

#include "unit.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "cli/try/try.h"

static struct client_result result;

static void run_shell(const char *script, int input, int timeout_s)
{
	client_run((const char *const[]){"sh", "-c", script, NULL}, input, timeout_s, 0, &result);
}

static void both_streams_and_the_status(void **state)
{
	(void)state;
	run_shell("echo out; echo err >&2; cat; exit 3", -1, 10);
	assert_int_equal(result.status, 3);
	assert_string_equal(result.output, "out\nerr\n");
	run_shell("kill -9 $$", -1, 10);
	assert_int_equal(result.status, 128 + SIGKILL);
	client_run((const char *const[]){"/nonexistent/client", NULL}, -1, 10, 0, &result);
	assert_int_equal(result.status, 127);
}

static void the_input_is_rewound(void **state)
{
	_cleanup_close_ int fd = memfd_create("input", MFD_CLOEXEC);

	(void)state;
	assert_int_equal(write(fd, "image", 5), 5);
	run_shell("cat", fd, 10);
	assert_int_equal(result.status, 0);
	assert_string_equal(result.output, "image");
}

/* Read to its end all the same: the client would wait for a reader otherwise. */
static void output_that_does_not_fit_is_cut_off(void **state)
{
	(void)state;
	run_shell("head -c 200000 /dev/zero | tr '\\0' x; exit 4", -1, 20);
	assert_int_equal(result.status, 4);
	assert_int_equal(strlen(result.output), CLIENT_OUTPUT_MAX - 1);
}

static void it_ends_when_its_time_is_over(void **state)
{
	time_t start = time(NULL);

	(void)state;
	run_shell("echo begun; sleep 60", -1, 1);
	assert_int_equal(result.status, -ETIMEDOUT);
	assert_string_equal(result.output, "begun\n");
	/* One that ignores SIGTERM is killed, and so is what it has started. */
	run_shell("trap '' TERM; sleep 60", -1, 1);
	assert_int_equal(result.status, -ETIMEDOUT);
	assert_true(time(NULL) - start < 30);
}

static void a_signal_ends_it_and_not_us(void **state)
{
	char script[64];

	(void)state;
	client_guard();
	(void)snprintf(script, sizeof(script), "kill -INT %d; sleep 60", (int)getpid());
	run_shell(script, -1, 30);
	assert_int_equal(result.status, -EINTR);
	assert_true(client_is_over());
	assert_false(client_is_over());
	run_shell("exit 0", -1, 10);
	assert_int_equal(result.status, 0);
}

static void run_patiently(const char *script, int patience_s)
{
	client_run((const char *const[]){"sh", "-c", script, NULL}, -1, 30, patience_s, &result);
}

/* What a daemon would go on with alone. */
static void some_have_time_after_a_signal(void **state)
{
	time_t start = time(NULL);
	char script[80];

	(void)state;
	client_guard();
	(void)snprintf(script, sizeof(script), "kill -INT %d; sleep 0.3; echo done", (int)getpid());
	run_patiently(script, 10);
	assert_int_equal(result.status, 0);
	assert_string_equal(result.output, "done\n");
	/* Then nothing else begins, but for another of these. */
	run_shell("echo begun", -1, 10);
	assert_int_equal(result.status, -EINTR);
	assert_string_equal(result.output, "");
	run_patiently("echo begun", 10);
	assert_int_equal(result.status, 0);
	run_patiently("sleep 60", 1);
	assert_int_equal(result.status, -EINTR);
	assert_true(client_is_over());
	assert_true(time(NULL) - start < 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_streams_and_the_status),         cmocka_unit_test(the_input_is_rewound),
		cmocka_unit_test(output_that_does_not_fit_is_cut_off), cmocka_unit_test(it_ends_when_its_time_is_over),
		cmocka_unit_test(a_signal_ends_it_and_not_us),         cmocka_unit_test(some_have_time_after_a_signal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
