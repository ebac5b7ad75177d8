/* SPDX-License-Identifier: Apache-2.0 */

/* Members put into JSON of every layout, and taken out. */

#include "unit.h"

#include <errno.h>

#include "cli/setup/json_file.h"

static void begin(struct text *text, const char *from)
{
	struct text_error error;

	assert_int_equal(text_set(text, from, strlen(from)), 0);
	assert_int_equal(json_file_check(text, &error), 0);
}

static void keeps_the_layout(void **state)
{
	static const struct {
		const char *from, *to;
	} cases[] = {
		{"", "{\n    \"runtimes\": {\n        \"nvidia\": {\n            \"path\": \"/r\"\n        }\n    }\n}\n"},
		{" \n{ }", " \n{\n    \"runtimes\": {\n        \"nvidia\": {\n            \"path\": \"/r\"\n        }\n    }\n}"},
		{"{\"a\":1}", "{\"a\":1,\"runtimes\":{\"nvidia\":{\"path\":\"/r\"}}}"},
		{"{\"a\": 1}\n", "{\"a\": 1, \"runtimes\": {\"nvidia\": {\"path\": \"/r\"}}}\n"},
		{"{\r\n\t\"z\": [\r\n],\r\n\t\"a\": 1\r\n}",
		 "{\r\n\t\"z\": [],\r\n\t\"a\": 1,\r\n\t\"runtimes\": {\r\n\t\t\"nvidia\": {\r\n\t\t\t\"path\": \"/r\"\r\n\t\t}\r\n\t}\r\n}"},
		{"{\n  \"runtimes\": {\n    \"kata\": {}\n  }, \"}\": \"{ \\n}\"\n}\n\n",
		 "{\n  \"runtimes\": {\n    \"kata\": {},\n    \"nvidia\": {\n      \"path\": \"/r\"\n    }\n  },\n  \"}\": \"{ \\n}\"\n}\n\n"},
		{"\xef\xbb\xbf{\"runtimes\": null}", "\xef\xbb\xbf{\"runtimes\": {\"nvidia\": {\"path\": \"/r\"}}}"},
		{"{\"runtimes\": {\"nvidia\": 1, \"b\": 12345678901234567890}}",
		 "{\"runtimes\": {\"nvidia\": {\"path\": \"/r\"}, \"b\": 12345678901234567890}}"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_text_ struct text text = {0};
		_cleanup_free_ char *value = NULL;

		begin(&text, cases[i].from);
		assert_int_equal(json_file_put(&text, "runtimes/nvidia", json_pack("{s:s}", "path", "/r")), 0);
		assert_string_equal(text.data, cases[i].to);
		assert_int_equal(json_file_get(&text, "runtimes/nvidia", &value), 0);
		assert_string_equal(value, "{\"path\": \"/r\"}");
		assert_int_equal(json_file_set(&text, "runtimes/nvidia", value), 0);
		assert_string_equal(text.data, cases[i].to);
	}
}

static void takes_out_members_and_empty_objects(void **state)
{
	static const struct {
		const char *from, *path, *to;
	} cases[] = {
		{"{\"a\": {\"b\": 1}, \"c\": {}}", "a/b", "{\"c\": {}}"},
		{"{\"a\": {\"b\": 1, \"d\": 2}}", "a/b", "{\"a\": {\"d\": 2}}"},
		{"{\"a\": 1, \"c\": 2}", "a", "{\"c\": 2}"},
		{"{\"a\": 1,\"c\": 2}", "b", "{\"a\": 1,\"c\": 2}"},
		{"{\"a\": 1,\"c\": 2}", "a/b", "{\"a\": 1,\"c\": 2}"},
		{" ", "a/b", " "},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_text_ struct text text = {0};

		begin(&text, cases[i].from);
		assert_int_equal(json_file_set(&text, cases[i].path, NULL), 0);
		assert_string_equal(text.data, cases[i].to);
	}
}

static void says_where_it_is_not_valid(void **state)
{
	static const struct {
		const char *text;
		size_t line, column;
	} cases[] = {
		{"{\n  \"a\": 1,\n}\n", 3, 1}, {"{\n  \"a\": 1\n  \"b\": 2\n}", 3, 5},   {"[]", 1, 1},
		{"\n  17", 2, 4},             {"{\"a\": 1, \"a\": 2}", 1, 12},         {"# comment\n{}", 1, 1},
		{"{} x", 1, 4},              {"\xef\xbb\xbf[1]", 1, 1},               {"{\"a\": \"\xff\"}", 1, 7},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_text_ struct text text = {0};
		struct text_error error = {0};

		assert_int_equal(text_set(&text, cases[i].text, strlen(cases[i].text)), 0);
		assert_int_equal(json_file_check(&text, &error), -EINVAL);
		assert_int_equal(error.line, cases[i].line);
		assert_int_equal(error.column, cases[i].column);
		assert_true(strlen(error.reason) > 0);
	}
}

static void refuses_nul_characters(void **state)
{
	static const char with[] = "{\"a\": 1\0\n}";
	_cleanup_text_ struct text text = {0};
	struct text_error error = {0};

	(void)state;
	assert_int_equal(text_set(&text, with, sizeof(with) - 1), 0);
	assert_int_equal(json_file_check(&text, &error), -EINVAL);
	assert_int_equal(error.column, 8);
}

static void does_not_write_into_what_is_no_object(void **state)
{
	_cleanup_text_ struct text text = {0};

	(void)state;
	begin(&text, "{\"runtimes\": [], \"features\": 1}");
	assert_int_equal(json_file_set(&text, "runtimes/nvidia", "true"), -ENOTDIR);
	assert_int_equal(json_file_set(&text, "features/cdi", "true"), -ENOTDIR);
	assert_string_equal(text.data, "{\"runtimes\": [], \"features\": 1}");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keeps_the_layout),
		cmocka_unit_test(takes_out_members_and_empty_objects),
		cmocka_unit_test(says_where_it_is_not_valid),
		cmocka_unit_test(refuses_nul_characters),
		cmocka_unit_test(does_not_write_into_what_is_no_object),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
