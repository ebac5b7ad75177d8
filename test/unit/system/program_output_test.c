/* SPDX-License-Identifier: Apache-2.0 */

/* A program is run for what it says, and has the time that its caller gives it. */

#include "unit.h"

#include <malloc.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "base/cleanup.h"
#include "system/program_output.h"

enum { LONG_MS = 60 * 1000, SHORT_MS = 50, ROOM = 64 };

/* Return: what it says, if it ends well in time; "" otherwise. */
static const char *said_by(const char *script, int time_ms)
{
	const char *const arguments[] = {"/bin/sh", "-c", script, NULL};
	_cleanup_free_ char *output = NULL;
	static char said[ROOM + 1];
	bool well;
	size_t size;

	well = program_output_read(arguments, time_ms, ROOM, &output, &size);
	assert_non_null(output);
	assert_int_equal(strlen(output), size);
	(void)snprintf(said, sizeof(said), "%s", well ? output : "");
	return said;
}

static void test_time(void **state)
{
	(void)state;
	assert_string_equal(said_by("sleep 0.2; echo late", LONG_MS), "late\n");
	assert_string_equal(said_by("echo early; exec sleep 100", SHORT_MS), "");
	/* Also of one that closes its output, and goes on. */
	assert_string_equal(said_by("echo early; exec >/dev/null; sleep 0.2", LONG_MS), "early\n");
	assert_string_equal(said_by("echo early; exec sleep 100 >/dev/null", SHORT_MS), "");
}

static void test_end(void **state)
{
	(void)state;
	assert_string_equal(said_by("echo bad; exit 1", LONG_MS), "");
	assert_string_equal(said_by("kill -KILL $$", LONG_MS), "");
	assert_string_equal(said_by("exec yes", LONG_MS), "");
}

/* What is not written of new memory is no zero. */
static void test_no_pipe(void **state)
{
	struct rlimit limit, none;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	none = (struct rlimit){0, limit.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	(void)mallopt(M_PERTURB, 0x5a);
	assert_string_equal(said_by("echo late", LONG_MS), "");
	(void)mallopt(M_PERTURB, 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

static int status_of(const char *script)
{
	const char *const arguments[] = {"/bin/sh", "-c", script, NULL};
	_cleanup_free_ char *output = NULL;
	size_t size;

	return program_output_read_status(arguments, LONG_MS, ROOM, &output, &size);
}

static void test_status(void **state)
{
	(void)state;
	assert_int_equal(status_of("echo same"), 0);
	assert_int_equal(status_of("echo differs; exit 1"), 1);
	assert_int_equal(status_of("echo part; kill -KILL $$"), -1);
	assert_int_equal(status_of("exec yes"), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_time),
		cmocka_unit_test(test_end),
		cmocka_unit_test(test_no_pipe),
		cmocka_unit_test(test_status),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
