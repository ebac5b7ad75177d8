/* SPDX-License-Identifier: Apache-2.0 */

/* What a session takes from the command line, and where its remarks go. */

#include "capture.h"
#include "unit.h"

#include "cli/session.h"

static char directory[] = "/tmp/ctr-gpu-session-XXXXXX";

static const char *in_directory(const char *name)
{
	static char path[128];

	(void)snprintf(path, sizeof(path), "%s/%s", directory, name);
	return path;
}

static void write_config(const char *text)
{
	FILE *file = fopen(in_directory("config.json"), "we");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

/* Return: session_open()'s result; capture_text: what it said, and what a remark says then. */
static int open_and_remark(struct session *session, const struct global_options *globals)
{
	int status;

	capture_begin(STDERR_FILENO);
	status = session_open(session, globals);
	if (!status)
		session_log(session, "%d steps", 3);
	session_close(session);
	(void)capture_end();
	return status;
}

static void remarks_are_for_those_who_ask(void **state)
{
	char config[128];

	(void)state;
	write_config("{}");
	(void)strcpy(config, in_directory("config.json"));
	assert_int_equal(open_and_remark(&(struct session){0}, &(struct global_options){.config = config}), 0);
	assert_string_equal(capture_text, "");
	assert_int_equal(
		open_and_remark(&(struct session){0}, &(struct global_options){.config = config, .debug = true}), 0);
	assert_non_null(strstr(capture_text, "ctr-gpu: debug: 3 steps\n"));
}

static void a_log_is_appended_to_and_nothing_else_is_said(void **state)
{
	char config[128], log[128], line[128];
	unsigned remarks = 0;
	FILE *file;

	(void)state;
	write_config("{}");
	(void)strcpy(config, in_directory("config.json"));
	(void)strcpy(log, in_directory("log"));
	for (int i = 0; i < 2; i++) {
		assert_int_equal(
			open_and_remark(&(struct session){0},
					&(struct global_options){.config = config, .debug = true, .debug_file = log}),
			0);
		assert_string_equal(capture_text, "");
	}
	file = fopen(log, "re");
	assert_non_null(file);
	while (fgets(line, sizeof(line), file))
		remarks += strcmp(line, "ctr-gpu: debug: 3 steps\n") == 0;
	(void)fclose(file);
	(void)unlink(log);
	assert_int_equal(remarks, 2);
}

static void a_log_that_cannot_be_written_is_an_error(void **state)
{
	(void)state;
	assert_int_equal(open_and_remark(&(struct session){0},
					 &(struct global_options){.debug = true, .debug_file = "/nonexistent/log"}),
			 1);
	assert_non_null(strstr(capture_text, "cannot write the log to /nonexistent/log: No such file or directory"));
}

/* The doctor reports a configuration that cannot be read, and goes on. */
static void a_bad_configuration_ends_all_but_the_lenient(void **state)
{
	char config[128];

	(void)state;
	write_config("{\"driver-timout\": 1}");
	(void)strcpy(config, in_directory("config.json"));
	assert_int_equal(open_and_remark(&(struct session){0}, &(struct global_options){.config = config}), 1);
	assert_non_null(strstr(capture_text, "ctr-gpu: [E_BAD_CONFIG] "));
	assert_int_equal(
		open_and_remark(&(struct session){.lenient = true}, &(struct global_options){.config = config}), 0);
	assert_string_equal(capture_text, "");
}

static void a_driver_root_is_absolute(void **state)
{
	char config[128];

	(void)state;
	write_config("{}");
	(void)strcpy(config, in_directory("config.json"));
	assert_int_equal(open_and_remark(&(struct session){0},
					 &(struct global_options){.config = config, .driver_root = "run/driver"}),
			 2);
	assert_non_null(strstr(capture_text, "[E_BAD_ARGUMENT]"));
}

static int make_directory(void **state)
{
	(void)state;
	return mkdtemp(directory) ? 0 : -1;
}

static int remove_directory(void **state)
{
	(void)state;
	(void)unlink(in_directory("config.json"));
	return rmdir(directory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(remarks_are_for_those_who_ask),
		cmocka_unit_test(a_log_is_appended_to_and_nothing_else_is_said),
		cmocka_unit_test(a_log_that_cannot_be_written_is_an_error),
		cmocka_unit_test(a_bad_configuration_ends_all_but_the_lenient),
		cmocka_unit_test(a_driver_root_is_absolute),
	};

	return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
