/* SPDX-License-Identifier: Apache-2.0 */

#include "capture.h"
#include "unit.h"

#include <getopt.h>

#include "hooks/internal.h"

#define WORDS(...) ((char *[]){(char *)"ctr-gpu-hook", __VA_ARGS__, NULL})

static struct arguments arguments;

/* capture_text: what it said */
static bool parse(char **words)
{
	int count = 0;
	bool fine;

	while (words[count])
		count++;
	optind = 0;
	capture_begin(STDERR_FILENO);
	fine = arguments_parse(count, words, &arguments);
	(void)capture_end();
	return fine;
}

static void stages(void **state)
{
	(void)state;
	assert_true(parse(WORDS("prestart")));
	assert_int_equal(arguments.stage, STAGE_CREATE);
	assert_true(parse(WORDS("createRuntime")));
	assert_int_equal(arguments.stage, STAGE_CREATE);
	assert_true(parse(WORDS("poststart")));
	assert_int_equal(arguments.stage, STAGE_IGNORED);
	assert_true(parse(WORDS("poststop")));
	assert_int_equal(arguments.stage, STAGE_CLEAN);
	assert_false(parse(WORDS("createContainer")));
	assert_non_null(strstr(capture_text, "Register the hook for the stage createRuntime"));
	assert_false(parse(WORDS("startContainer")));
	assert_false(parse(WORDS("prestar")));
	assert_non_null(strstr(capture_text, "unknown stage 'prestar'"));
	assert_non_null(strstr(capture_text, "prestart and poststop"));
}

/* As nvidia-container-runtime-hook takes them. */
static void options_have_one_dash_or_two(void **state)
{
	char **words =
		WORDS("-config", "/etc/mine.json", "--debug=/var/log/hook", "-device=0", "--dry-run", "prestart");

	(void)state;
	assert_true(parse(words));
	assert_string_equal(arguments.config, "/etc/mine.json");
	assert_true(arguments.debug && arguments.cdi && arguments.dry_run);
	assert_string_equal(arguments.debug_file, "/var/log/hook");
	assert_ptr_equal(arguments.all, words);
	assert_true(parse(WORDS("-debug", "prestart")));
	assert_true(arguments.debug && !arguments.debug_file);
	assert_false(arguments.cdi || arguments.dry_run || arguments.config);
	assert_true(parse(WORDS("-version")));
	assert_true(arguments.version);
	assert_true(parse(WORDS("--help")));
	assert_true(arguments.help);
}

static void what_makes_no_sense_is_refused(void **state)
{
	(void)state;
	assert_false(parse(WORDS("--config=mine.json", "prestart")));
	assert_non_null(strstr(capture_text, "[E_BAD_ARGUMENT] --config takes an absolute path, not 'mine.json'"));
	assert_false(parse(WORDS("--debug=log", "prestart")));
	assert_false(parse((char *[]){(char *)"ctr-gpu-hook", NULL}));
	assert_non_null(strstr(capture_text, "Usage: ctr-gpu-hook "));
	assert_false(parse(WORDS("prestart", "prestart")));
	assert_false(parse(WORDS("--frobnicate", "prestart")));
	assert_false(parse(WORDS("prestart", "--config")));
}

static void a_program_is_known_by_its_last_component(void **state)
{
	(void)state;
	assert_true(arguments_is_called("/usr/bin/nvidia-cdi-hook", "nvidia-cdi-hook"));
	assert_true(arguments_is_called("nvidia-cdi-hook", "nvidia-cdi-hook"));
	assert_false(arguments_is_called("/usr/bin/nvidia-cdi-hook.real", "nvidia-cdi-hook"));
	assert_false(arguments_is_called("/usr/bin/nvidia-cdi-hook/", "nvidia-cdi-hook"));
	assert_false(arguments_is_called("/nvidia-cdi-hook/ctr-gpu-hook", "nvidia-cdi-hook"));
	assert_false(arguments_is_called(NULL, "nvidia-cdi-hook"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stages),
		cmocka_unit_test(options_have_one_dash_or_two),
		cmocka_unit_test(what_makes_no_sense_is_refused),
		cmocka_unit_test(a_program_is_known_by_its_last_component),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
