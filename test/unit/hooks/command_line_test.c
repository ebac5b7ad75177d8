/* SPDX-License-Identifier: Apache-2.0 */

#include "unit.h"

#include "hooks/runtime/runtime.h"

#define WORDS(...) ((char *[]){__VA_ARGS__, NULL})

static struct command_line line;

static void assert_string_or_null(const char *is, const char *expected)
{
	if (!expected)
		assert_null(is);
	else
		assert_string_equal(is, expected);
}

static void expect(char **words, const char *command, const char *bundle, const char *config, const char *log)
{
	command_line_read(words, &line);
	assert_string_or_null(line.command, command);
	assert_string_or_null(line.bundle, bundle);
	assert_string_or_null(line.config, config);
	assert_string_or_null(line.log, log);
}

/* As containerd, Podman, Docker and CRI-O call a runtime. */
static void engines(void **state)
{
	(void)state;
	expect(WORDS("--root", "/run/runc", "--log", "/run/log.json", "--log-format", "json", "--systemd-cgroup",
		     "create", "--bundle", "/run/bundle", "--pid-file", "/run/pid", "name"),
	       "create", "/run/bundle", NULL, "/run/log.json");
	assert_true(line.creates && line.log_json);
	expect(WORDS("--systemd-cgroup", "--log-format=json", "--log=/run/log", "create", "--bundle=/b",
		     "--pid-file=/p", "--console-socket", "/c", "name"),
	       "create", "/b", NULL, "/run/log");
	expect(WORDS("-root=/r", "-log=/l", "run", "-b", "/b", "-preserve-fds", "3", "name"), "run", "/b", NULL, "/l");
	assert_true(line.creates);
	assert_false(line.log_json);
	expect(WORDS("create", "name", "--bundle", "/b", "-f", "other.json"), "create", "/b", "other.json", NULL);
	expect(WORDS("create", "-b/b", "-fother.json", "name"), "create", "/b", "other.json", NULL);
	expect(WORDS("create", "-bundle", "/b", "--b/c", "-no-pivot", "name"), "create", "/b", NULL, NULL);
}

static void other_commands_have_no_bundle(void **state)
{
	(void)state;
	expect(WORDS("--root", "/r", "exec", "--bundle", "/b", "name"), "exec", NULL, NULL, NULL);
	assert_false(line.creates);
	expect(WORDS("kill", "create"), "kill", NULL, NULL, NULL);
	/* The value of an option is no command. */
	expect(WORDS("--root", "create", "state", "name"), "state", NULL, NULL, NULL);
	expect(WORDS("--rootless", "auto", "--cgroup-manager=systemd", "list"), "list", NULL, NULL, NULL);
}

static void ends_and_gaps(void **state)
{
	(void)state;
	expect(WORDS(NULL), NULL, NULL, NULL, NULL);
	assert_false(line.creates);
	expect(WORDS("--version"), NULL, NULL, NULL, NULL);
	expect(WORDS("--log"), NULL, NULL, NULL, NULL);
	expect(WORDS("create", "--bundle"), "create", NULL, NULL, NULL);
	expect(WORDS("create", "--", "--bundle", "/b"), "create", NULL, NULL, NULL);
	expect(WORDS("create", "-", "--bundle="), "create", "", NULL, NULL);
	/* Nothing is read behind the end. */
	expect(WORDS("--log", NULL, (char *)"create"), NULL, NULL, NULL, NULL);
	/* An option of ours is not one whose name begins so. */
	expect(WORDS("--log-formats", "create", "--bundles", "/b"), "create", NULL, NULL, NULL);
	expect(WORDS("--lo", "create"), "create", NULL, NULL, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(engines),
		cmocka_unit_test(other_commands_have_no_bundle),
		cmocka_unit_test(ends_and_gaps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
