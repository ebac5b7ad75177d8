/* SPDX-License-Identifier: Apache-2.0 */

#include "capture.h"
#include "unit.h"

#include "cli/verbs.h"

static const struct verb table[] = {
	{"info", "", "", NULL},
	{"list", "", "", NULL},
	{"configure", "", "", NULL},
	{"unconfigure", "", "", NULL},
	{"cdi", "", "", NULL},
	{"load", "", "", NULL},
	{0},
};

static const char *suggest(const char *name)
{
	capture_begin(STDERR_FILENO);
	suggest_verb(table, "ctr-gpu", name);
	return capture_end();
}

static void names_the_nearest_command(void **state)
{
	static const char *const pairs[][2] = {
		{"ifno", "info"},      /* two letters swapped */
		{"lst", "list"},       /* one left out */
		{"lisst", "list"},     /* one too many */
		{"loaf", "load"},      /* another one */
		{"conf", "configure"}, /* a beginning */
		{"uncofnigur", "unconfigure"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		char expected[128];

		(void)snprintf(expected, sizeof(expected), "ctr-gpu: unknown command '%s'; did you mean '%s'?\n",
			       pairs[i][0], pairs[i][1]);
		assert_string_equal(suggest(pairs[i][0]), expected);
	}
}

/* Of short names everything is near everything; a long one would not fit into the table. */
static void names_none_that_is_far(void **state)
{
	static const char *const names[] = {"", "xy", "xi", "frobnicate", "zzzz", "configureconfigureconfigure"};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char expected[128];

		(void)snprintf(expected, sizeof(expected),
			       "ctr-gpu: unknown command '%s'; 'ctr-gpu --help' lists them\n", names[i]);
		assert_string_equal(suggest(names[i]), expected);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_the_nearest_command),
		cmocka_unit_test(names_none_that_is_far),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
