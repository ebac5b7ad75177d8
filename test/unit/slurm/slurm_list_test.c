/* SPDX-License-Identifier: Apache-2.0 */

/* Which names Slurm's lists have. */

#include "unit.h"

#include "slurm/slurm_list.h"

static void names_of_a_list(void **state)
{
	static const struct {
		const char *list, *name;
		bool has;
	} cases[] = {
		{"node07", "node07", true},
		{"node07", "node7", false},
		{"node07", "node070", false},
		{"", "node", false},
		{"login,node[00-15]", "node07", true},
		{"login,node[00-15]", "login", true},
		{"node[00-15]", "node7", false},
		{"node[00-15]", "node16", false},
		{"node[0-15]", "node7", true},
		{"node[0-15]", "node07", false},
		{"node[00-03,20]", "node20", true},
		{"node[00-03,20]", "20]", false},
		{"node[00-03],gpu", "gpu", true},
		{"r[0-3]n[0-7]", "r1n5", true},
		{"r[0-3]n[0-7]", "r4n5", false},
		{"r[0-3]n[0-7]", "r1n", false},
		{"n[1-9]0", "n10", true},
		{"n[1-12][1-9]", "n123", true},
		{"node[00-15", "node07", false},
		{"node[]", "node", false},
		{"node[a-b]", "nodea", false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		if (slurm_list_has(cases[i].list, cases[i].name) != cases[i].has)
			fail_msg("%s: %s", cases[i].list, cases[i].name);
}

/* Digits can be divided among ranges in more ways than can be tried one after the other. */
static void a_list_with_many_ranges_is_read_in_time(void **state)
{
	char list[30 * 8 + 2] = "", name[] = "111111111111111111111111111111111111111111111111111111111111111";

	(void)state;
	for (size_t i = 0; i < 30; i++)
		(void)strcat(list, "[1-1111]");
	assert_true(slurm_list_has(list, name));
	(void)strcat(list, "x");
	(void)alarm(60); /* ends this program */
	assert_false(slurm_list_has(list, name));
	(void)alarm(0);
}

static void names_that_no_host_has_are_in_no_list(void **state)
{
	char name[4096];

	(void)state;
	memset(name, 'a', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	assert_false(slurm_list_has(name, name));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_of_a_list),
		cmocka_unit_test(a_list_with_many_ranges_is_read_in_time),
		cmocka_unit_test(names_that_no_host_has_are_in_no_list),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
