/* SPDX-License-Identifier: Apache-2.0 */

/* The options before and behind a command's name, and those of a request. */

#include "capture.h"
#include "unit.h"

#include "cli/session.h"

#define WORDS(...) ((char *[]){(char *)"ctr-gpu", __VA_ARGS__, NULL})

static int count(char **words)
{
	int n = 0;

	while (words[n])
		n++;
	return n;
}

static void letters_add_up_with_the_list(void **state)
{
	char **words = WORDS("-c", "--capabilities=video,ngx", "-g", "--compat32", "-d", "0", "--device=1:0");
	struct request_options options = {0};

	(void)state;
	assert_int_equal(argp_parse(&request_argp, count(words), words, 0, NULL, &options), 0);
	assert_string_equal(options.capabilities, "compute,video,ngx,graphics,compat32");
	assert_string_equal(options.devices, "0,1:0");
	assert_null(options.imex_channels);
	request_options_clear(&options);
	assert_null(options.capabilities);
}

static void conditions_and_channels_are_kept_in_order(void **state)
{
	char **words = WORDS("-r", "cuda>=12.4", "--imex-channel=3", "--require=brand=tesla,driver>=470",
			     "--imex-channel", "all");
	struct request_options options = {0};

	(void)state;
	assert_int_equal(argp_parse(&request_argp, count(words), words, 0, NULL, &options), 0);
	assert_int_equal(options.requirement_count, 2);
	assert_string_equal(options.requirements[0], "cuda>=12.4");
	assert_string_equal(options.requirements[1], "brand=tesla,driver>=470");
	assert_string_equal(options.imex_channels, "3,all");
	assert_null(options.devices);
	request_options_clear(&options);
}

static void lists_grow_by_commas(void **state)
{
	char *list = NULL;

	(void)state;
	assert_int_equal(request_list_append(&list, ""), 0);
	assert_string_equal(list, "");
	assert_int_equal(request_list_append(&list, "a"), 0);
	assert_string_equal(list, "a");
	assert_int_equal(request_list_append(&list, "b,c"), 0);
	assert_string_equal(list, "a,b,c");
	free(list);
}

static void options_before_a_command(void **state)
{
	char **words = WORDS("-c", "/etc/mine.json", "-d", "-r", "/run/driver", "--timeout=0.5", "--inventory=ioctl");
	struct global_options globals = {0};

	(void)state;
	assert_int_equal(argp_parse(&global_options_before_verb, count(words), words, 0, NULL, &globals), 0);
	assert_string_equal(globals.config, "/etc/mine.json");
	assert_true(globals.debug);
	assert_null(globals.debug_file);
	assert_string_equal(globals.driver_root, "/run/driver");
	assert_int_equal(globals.timeout_ms, 500);
	assert_true(globals.inventory_given);
	assert_int_equal(globals.inventory, CTR_GPU_INVENTORY_IOCTL);
}

static void parse_behind(void *user)
{
	struct global_options globals = {0};

	global_options_parse_verb(&globals, &global_options_behind_verb, count(user), user, &globals);
}

static void options_behind_a_command_are_long(void **state)
{
	char **words = WORDS("--debug=/tmp/log", "--timeout=3600", "--root=/run/driver", "--config=/etc/mine.json");
	struct global_options globals = {0};

	(void)state;
	global_options_parse_verb(&globals, &global_options_behind_verb, count(words), words, &globals);
	assert_string_equal(globals.debug_file, "/tmp/log");
	assert_int_equal(globals.timeout_ms, 3600 * 1000);
	assert_string_equal(globals.driver_root, "/run/driver");
	assert_string_equal(globals.config, "/etc/mine.json");
	assert_int_equal(capture_exit(parse_behind, WORDS("-d")), 2);
	assert_int_equal(capture_exit(parse_behind, WORDS("-c", "/etc/mine.json")), 2);
}

static void what_cannot_be_is_refused(void **state)
{
	static const struct {
		const char *word, *message;
	} cases[] = {
		{"--timeout=0", "--timeout is a number of seconds from 0.001 to 3600, not '0'"},
		{"--timeout=3601", "not '3601'"},
		{"--timeout=nan", "not 'nan'"},
		{"--timeout=1s", "not '1s'"},
		{"--timeout=", "not ''"},
		{"--inventory=nvml", "--inventory is auto, dxcore or ioctl, not 'nvml'"},
		{"more", "'more' is one argument too many"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(capture_exit(parse_behind, WORDS((char *)cases[i].word)), 2);
		assert_non_null(strstr(capture_text, cases[i].message));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(letters_add_up_with_the_list),
		cmocka_unit_test(conditions_and_channels_are_kept_in_order),
		cmocka_unit_test(lists_grow_by_commas),
		cmocka_unit_test(options_before_a_command),
		cmocka_unit_test(options_behind_a_command_are_long),
		cmocka_unit_test(what_cannot_be_is_refused),
	};

	argp_err_exit_status = 2;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
