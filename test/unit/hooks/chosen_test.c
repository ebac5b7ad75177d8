/* SPDX-License-Identifier: Apache-2.0 */

/* What is read of a configuration without a JSON parser, and what is left to one. The settings must agree. */

#include "unit.h"

#include <string.h>

#include "hooks/runtime/chosen.h"
#include "lib/settings.h"

static const struct {
	const char *text;
	const char *runtimes[3]; /* that it names, if it is plain */
	bool plain;
} cases[] = {
	{"{}", {NULL}, true},
	{" {\n} \t\r\n", {NULL}, true},
	{"{\"runtimes\": [\"/usr/bin/crun\"]}", {"/usr/bin/crun"}, true},
	{"{\"runtimes\":[\"crun\",\"runc\"],\"deadline\":30}", {"crun", "runc"}, true},
	{"{\"log\": \"journal\", \"strict-requirements\": true, \"runtimes\" : [ \"youki\" ] }", {"youki"}, true},
	{"{\"library-directories\": [], \"runtimes\": [\"a\"]}", {"a"}, true},
	{"{\"library-directories\": [\"/a\", \"/b\"]}", {NULL}, true},
	{"{\"unknown\": null, \"runtimes\": [\"a\"]}", {"a"}, true},
	/* Wrong, or not plain. */
	{"", {NULL}, false},
	{"{", {NULL}, false},
	{"[]", {NULL}, false},
	{"{} x", {NULL}, false},
	{"{}{}", {NULL}, false},
	{"{,}", {NULL}, false},
	{"{\"a\": 1,}", {NULL}, false},
	{"{\"a\" 1}", {NULL}, false},
	{"{\"a\": }", {NULL}, false},
	{"{\"a\": nul}", {NULL}, false},
	{"{\"a\": 01}", {NULL}, false},
	{"{\"a\": 1.5}", {NULL}, false},
	{"{\"a\": -1}", {NULL}, false},
	{"{\"a\": 99999999999999999999}", {NULL}, false},
	{"{\"a\": {}}", {NULL}, false},
	{"{\"a\": [1]}", {NULL}, false},
	{"{\"a\": [\"b\",]}", {NULL}, false},
	{"{\"runtimes\": []}", {NULL}, false},
	{"{\"runtimes\": \"runc\"}", {NULL}, false},
	{"{\"runtimes\": [\"\"]}", {NULL}, false},
	{"{\"runtimes\": [\"bin/runc\"]}", {NULL}, false},
	{"{\"runtimes\": [\"run\\u0063\"]}", {NULL}, false},
	{"{\"runtimes\": [\"\303\244\"]}", {NULL}, false},
	{"{\"runtimes\": [\"a\nb\"]}", {NULL}, false},
	{"{\"runtimes\": [\"a\"], \"runtimes\": [\"b\"]}", {NULL}, false},
	{"{\"log\": 1, \"runtimes\": [\"a\"], \"log\": 1}", {NULL}, false},
	{"{\"log\": \"a\t\"}", {NULL}, false},
	{"{\"runtimes\": [\"a\"]", {NULL}, false},
	{"{\"runtimes\": [\"1\",\"2\",\"3\",\"4\",\"5\",\"6\",\"7\",\"8\",\"9\"]}", {NULL}, false},
};

static void expect_settings(const char *text, const struct chosen *chosen)
{
	struct settings settings;

	settings_init(&settings);
	(void)settings_parse(&settings, "x", text, strlen(text), NULL);
	assert_false(settings.unread);
	assert_int_equal(settings.runtimes.count, chosen->count);
	settings_clear(&settings);
}

static void plain_ones(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct chosen chosen;
		size_t count = 0;

		if (chosen_read(cases[i].text, strlen(cases[i].text), &chosen) != cases[i].plain)
			fail_msg("%s", cases[i].text);
		if (!cases[i].plain)
			continue;
		expect_settings(cases[i].text, &chosen);
		for (; cases[i].runtimes[count]; count++) {
			assert_int_equal(chosen.items[count].length, strlen(cases[i].runtimes[count]));
			assert_memory_equal(chosen.items[count].text, cases[i].runtimes[count],
					    chosen.items[count].length);
		}
		assert_int_equal(chosen.count, count);
	}
}

/* Whatever it ends in the middle of, nothing behind its end is read. */
static void ends_anywhere(void **state)
{
	const char *text = cases[4].text;

	(void)state;
	for (size_t size = 0; size < strlen(text); size++) {
		char *copy = malloc(size + 1);
		struct chosen chosen;

		assert_non_null(copy);
		memcpy(copy, text, size);
		copy[size] = '}';
		assert_true(!chosen_read(copy, size, &chosen) || size == strlen(text) - 1);
		free(copy);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plain_ones),
		cmocka_unit_test(ends_anywhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
