/* SPDX-License-Identifier: Apache-2.0 */

/* JSON of every layout, with other members in it. */

#include "unit.h"

#include <errno.h>

#include "base/json.h"
#include "engines/text.h"

static json_t *begin(struct text_buffer *text, const char *from)
{
	struct text_buffer_error error;
	json_t *json;

	assert_int_equal(text_buffer_set(text, from, strlen(from)), 0);
	assert_int_equal(json_file_read(text, &json, &error), 0);
	return json;
}

static void keeps_the_layout(void **state)
{
	static const struct {
		const char *from, *to;
	} cases[] = {
		{"",
		 "{\n    \"runtimes\": {\n        \"nvidia\": {\n            \"path\": \"/r\"\n        }\n    }\n}\n"},
		{" \n{ }",
		 " \n{\n    \"runtimes\": {\n        \"nvidia\": {\n            \"path\": \"/r\"\n        }\n    }\n}"},
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
		_cleanup_text_buffer_ struct text_buffer text = {0};
		_cleanup_json_ json_t *json = begin(&text, cases[i].from), *read = NULL;
		struct text_buffer_error error;

		if (!json_is_object(json_object_get(json, "runtimes")))
			assert_int_equal(json_object_set_new(json, "runtimes", json_object()), 0);
		assert_int_equal(json_object_set_new(json_object_get(json, "runtimes"), "nvidia",
						     json_pack("{s:s}", "path", "/r")),
				 0);
		assert_int_equal(json_file_write(&text, json), 0);
		assert_string_equal(text.data, cases[i].to);
		assert_int_equal(json_file_read(&text, &read, &error), 0);
		assert_true(json_equal(read, json));
	}
}

static void says_where_it_is_not_valid(void **state)
{
	static const struct {
		const char *text;
		size_t line, column;
	} cases[] = {
		{"{\n  \"a\": 1,\n}\n", 3, 1},
		{"{\n  \"a\": 1\n  \"b\": 2\n}", 3, 5},
		{"[]", 1, 1},
		{"\n  17", 2, 4},
		{"{\"a\": 1, \"a\": 2}", 1, 12},
		{"# comment\n{}", 1, 1},
		{"{} x", 1, 4},
		{"\xef\xbb\xbf[1]", 1, 1},
		{"{\"a\": \"\xff\"}", 1, 7},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_text_buffer_ struct text_buffer text = {0};
		struct text_buffer_error error = {0};
		json_t *json;

		assert_int_equal(text_buffer_set(&text, cases[i].text, strlen(cases[i].text)), 0);
		assert_int_equal(json_file_read(&text, &json, &error), -EINVAL);
		assert_int_equal(error.line, cases[i].line);
		assert_int_equal(error.column, cases[i].column);
		assert_true(strlen(error.reason) > 0);
	}
}

static void refuses_nul_characters(void **state)
{
	static const char with[] = "{\"a\": 1\0\n}";
	_cleanup_text_buffer_ struct text_buffer text = {0};
	struct text_buffer_error error = {0};
	json_t *json;

	(void)state;
	assert_int_equal(text_buffer_set(&text, with, sizeof(with) - 1), 0);
	assert_int_equal(json_file_read(&text, &json, &error), -EINVAL);
	assert_int_equal(error.column, 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keeps_the_layout),
		cmocka_unit_test(says_where_it_is_not_valid),
		cmocka_unit_test(refuses_nul_characters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
