/* SPDX-License-Identifier: Apache-2.0 */

/* Members put into JSON of every layout and taken out again. */

#include "unit.h"

#include <errno.h>

#include "cli/setup/json_text.h"

/* What `ctr-gpu setup docker` writes at most, in its order. */
static const struct {
	const char *path, *value;
} members[] = {
	{"runtimes/nvidia", "{\"path\": \"/usr/bin/ctr-gpu-runtime\"}"},
	{"features/cdi", "true"},
	{"default-runtime", "\"nvidia\""},
};

#define JSON(...) json_loads(__VA_ARGS__, JSON_DECODE_ANY, NULL)

static void begin(struct text *text, const char *from)
{
	struct text_error error;

	assert_int_equal(text_set(text, from, strlen(from)), 0);
	assert_int_equal(json_text_check(text, &error), 0);
}

static void put(struct text *text, const char *path, const char *value, json_t *journal)
{
	json_t *json = JSON(value);
	struct text_error error;

	assert_int_equal(json_text_put(text, path, json, journal), 0);
	assert_int_equal(json_text_check(text, &error), 0);
	json_decref(json);
}

static void put_all(struct text *text, json_t *journal)
{
	for (size_t i = 0; i < ARRAY_SIZE(members); i++)
		put(text, members[i].path, members[i].value, journal);
}

static int undo_all(struct text *text, const json_t *journal)
{
	int left = 0, r;
	struct text_error error;

	for (size_t i = json_array_size(journal); i-- > 0;) {
		r = json_text_undo(text, json_array_get(journal, i));
		assert_true(r >= 0);
		assert_int_equal(json_text_check(text, &error), 0);
		left += r;
	}
	return left;
}

static const char *const layouts[] = {
	"", "\n", " \t\r\n ", "{}", "{}\n", "{ }", "{\n}", "{\r\n}\r\n", "\xef\xbb\xbf{}", "\xef\xbb\xbf", "\n{}", "  {\n  }  \n",
	"{\"a\":1}", "{\"a\": 1}", "{ \"a\": 1 }", "{\"a\":1,\"b\":2}", "{\"a\": 1, \"b\": 2}\n",
	"{\n  \"a\": 1\n}\n", "{\n\t\"a\": 1,\n\t\"b\": [1, {\"x\": 2}]\n}", "{\r\n    \"a\": 1\r\n}\r\n",
	"{\"runtimes\":{}}", "{\"runtimes\": {}}", "{\"runtimes\": { }}", "{\n \"runtimes\": {}\n}", "{\n \"runtimes\": {\n }\n}",
	"{\n\t\"runtimes\": {\n\t\t\"kata\": {\n\t\t\t\"path\": \"/k\"\n\t\t}\n\t},\n\t\"x\": null\n}\n",
	"{\"runtimes\":{\"kata\":{\"path\":\"/k\"}},\"default-runtime\":\"kata\"}",
	"{\n  \"runtimes\": null,\n  \"features\" : {\"buildkit\" :true} }",
	"{\"runtimes\" : {\"nvidia\" : {\"path\" : \"nvidia-container-runtime\", \"runtimeArgs\" : [ ]} }}\n",
	"{\"features\": {\"cdi\": false}}", "{\"features\": {\"cdi\": true}}", "{\"\\u0072untimes\": {\"kata\": {}}}",
	"{ \"a\" : \"}{\\\"\\\\\", \"b\":[ ],\"c\" :\n{ } }", "{\"a\": {\"runtimes\": {\"nvidia\": 1}}, \"runtimes/nvidia\": 2}",
};

static void puts_in_and_takes_out_again(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(layouts); i++) {
		_cleanup_text_ struct text text = {0};
		json_t *journal = json_array(), *got;

		begin(&text, layouts[i]);
		put_all(&text, journal);
		for (size_t j = 0; j < ARRAY_SIZE(members); j++) {
			json_t *wanted = JSON(members[j].value);

			assert_int_equal(json_text_get(&text, members[j].path, &got), 0);
			assert_true(json_equal(got, wanted));
			json_decref(got);
			json_decref(wanted);
		}
		assert_int_equal(undo_all(&text, journal), 0);
		assert_int_equal(text.size, strlen(layouts[i]));
		assert_string_equal(text.data, layouts[i]);
		json_decref(journal);
	}
}

static void changes_nothing_the_second_time(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(layouts); i++) {
		_cleanup_text_ struct text text = {0}, once = {0};
		json_t *journal = json_array();

		begin(&text, layouts[i]);
		put_all(&text, journal);
		assert_int_equal(text_set(&once, text.data, text.size), 0);
		assert_int_equal(json_array_clear(journal), 0);
		put_all(&text, journal);
		assert_int_equal(json_array_size(journal), 0);
		assert_string_equal(text.data, once.data);
		json_decref(journal);
	}
}

static void keeps_the_layout(void **state)
{
	static const struct {
		const char *from, *to;
	} cases[] = {
		{"", "{\n    \"runtimes\": {\n        \"nvidia\": {\n            \"path\": \"/r\"\n        }\n    }\n}\n"},
		{"{}", "{\n    \"runtimes\": {\n        \"nvidia\": {\n            \"path\": \"/r\"\n        }\n    }\n}"},
		{"{ }", "{ \"runtimes\": {\"nvidia\": {\"path\": \"/r\"}} }"},
		{"{\"a\":1}", "{\"a\":1,\"runtimes\":{\"nvidia\":{\"path\":\"/r\"}}}"},
		{"{\"a\": 1}\n", "{\"a\": 1, \"runtimes\": {\"nvidia\": {\"path\": \"/r\"}}}\n"},
		{"{\r\n\t\"a\": 1\r\n}", "{\r\n\t\"a\": 1,\r\n\t\"runtimes\": {\r\n\t\t\"nvidia\": {\r\n\t\t\t\"path\": \"/r\"\r\n\t\t}\r\n\t}\r\n}"},
		{"{\n  \"runtimes\": {}\n}", "{\n  \"runtimes\": {\n    \"nvidia\": {\n      \"path\": \"/r\"\n    }\n  }\n}"},
		{"{\n  \"runtimes\": {\n    \"kata\": {}\n  }\n}",
		 "{\n  \"runtimes\": {\n    \"kata\": {},\n    \"nvidia\": {\n      \"path\": \"/r\"\n    }\n  }\n}"},
		{"{\"runtimes\": null}", "{\"runtimes\": {\"nvidia\": {\"path\": \"/r\"}}}"},
		{"{\"runtimes\": {\"nvidia\": 1, \"b\": 2}}", "{\"runtimes\": {\"nvidia\": {\"path\": \"/r\"}, \"b\": 2}}"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_text_ struct text text = {0};
		json_t *journal = json_array();

		begin(&text, cases[i].from);
		put(&text, "runtimes/nvidia", "{\"path\": \"/r\"}", journal);
		assert_string_equal(text.data, cases[i].to);
		json_decref(journal);
	}
}

/* Puts @to in the place of @from, as somebody with an editor does. */
static void edit(struct text *text, const char *from, const char *to)
{
	const char *at = strstr(text->data, from);

	assert_non_null(at);
	assert_int_equal(text_splice(text, (size_t)(at - text->data), strlen(from), to, strlen(to)), 0);
}

static void keeps_what_others_did_since(void **state)
{
	static const struct {
		const char *layout, *from, *to, *left;
		int kept;
	} cases[] = {
		{"{\n \"a\": 1\n}", "1", "2", "{\n \"a\": 2\n}", 0},
		{"{\n \"a\": 1\n}", "{\n", "{\n \"b\": 2,\n", "{\n \"b\": 2,\n \"a\": 1\n}", 0},
		{"{\n \"a\": 1\n}", "}\n}", "},\n \"b\": 2\n}", "{\n \"a\": 1,\n \"b\": 2\n}", 0},
		{"{\n \"a\": 1\n}", "\"a\": 1,\n ", "", "{}", 0},
		{"{\n}", "}\n}", "},\n    \"b\": 2\n}", "{\n    \"b\": 2\n}", 0},
		{"{}", "}\n}", "},\n    \"b\": 2\n}", "{\n    \"b\": 2\n}", 0},
		{"", "}\n}", "},\n    \"b\": 2\n}", "{\n    \"b\": 2\n}\n", 0},
		{"", "\n        }", "\n        }, \"kata\": {}", "{\n    \"runtimes\": {\n        \"kata\": {}\n    }\n}\n", 0},
		{"{\"a\":1}", "{\"path\"", "{ \"path\"", "{\"a\":1}", 0},
		{"{\"a\":1}", "{\"path\":\"/r\"}", "{\"path\":\"/mine\"}", "{\"a\":1,\"runtimes\":{\"nvidia\":{\"path\":\"/mine\"}}}", 1},
		{"{\"a\":1}", ",\"runtimes\":{\"nvidia\":{\"path\":\"/r\"}}", "", "{\"a\":1}", 0},
		{"{\"runtimes\": {\"nvidia\": {\"path\": \"/old\"}}}", "/r", "/mine", "{\"runtimes\": {\"nvidia\": {\"path\": \"/mine\"}}}", 1},
		{"{\"runtimes\": {\"nvidia\": {\"path\": \"/old\"}}}", "{\"runtimes\"", "{\"b\": 1, \"runtimes\"",
		 "{\"b\": 1, \"runtimes\": {\"nvidia\": {\"path\": \"/old\"}}}", 0},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_text_ struct text text = {0};
		json_t *journal = json_array();

		begin(&text, cases[i].layout);
		put(&text, "runtimes/nvidia", "{\"path\": \"/r\"}", journal);
		edit(&text, cases[i].from, cases[i].to);
		assert_int_equal(undo_all(&text, journal), cases[i].kept);
		assert_string_equal(text.data, cases[i].left);
		json_decref(journal);
	}
}

/* ---- layouts that nobody thought of ---- */

static uint32_t seed;

static uint32_t below(uint32_t bound)
{
	seed = seed * 1664525 + 1013904223;
	return (seed >> 8) % bound;
}

static void write_blanks(struct text *out)
{
	static const char *const blanks[] = {"", "", "", " ", "  ", "\n", "\r\n", "\t", "\n  ", "\n\n\t"};

	assert_int_equal(text_append(out, "%s", blanks[below(ARRAY_SIZE(blanks))]), 0);
}

static void write_value(struct text *out, unsigned depth);

static void write_object(struct text *out, unsigned depth)
{
	static const char *const names[] = {"runtimes", "nvidia", "features", "cdi", "default-runtime", "a\\\"}", "path", "{"};
	uint32_t count = below(5), taken = 0;
	bool first = true;

	assert_int_equal(text_append(out, "{"), 0);
	while (count-- > 0) {
		uint32_t name = below(ARRAY_SIZE(names));

		if (taken & 1U << name)
			continue;
		taken |= 1U << name;
		assert_int_equal(text_append(out, "%s", first ? "" : ","), 0);
		first = false;
		write_blanks(out);
		assert_int_equal(text_append(out, "\"%s\"", names[name]), 0);
		write_blanks(out);
		assert_int_equal(text_append(out, ":"), 0);
		write_blanks(out);
		write_value(out, depth + 1);
		write_blanks(out);
	}
	if (first)
		write_blanks(out);
	assert_int_equal(text_append(out, "}"), 0);
}

static void write_value(struct text *out, unsigned depth)
{
	static const char *const scalars[] = {"null", "true", "false", "1e3", "\"\"", "\"}\\\",\"", "[]", "[ {}, \"]\" ]", "12345678901234567890"};

	if (depth < 4 && below(depth ? 2 : 1) == 0)
		write_object(out, depth);
	else
		assert_int_equal(text_append(out, "%s", scalars[below(ARRAY_SIZE(scalars))]), 0);
}

static void puts_into_any_layout_and_takes_out_again(void **state)
{
	unsigned put_somewhere = 0;

	(void)state;
	for (seed = 1; put_somewhere < 20000; put_somewhere++) {
		_cleanup_text_ struct text text = {0}, before = {0};
		json_t *journal = json_array();
		struct text_error error;

		if (below(4) == 0)
			assert_int_equal(text_append(&text, "\xef\xbb\xbf"), 0);
		write_blanks(&text);
		if (below(20))
			write_value(&text, 0);
		write_blanks(&text);
		begin(&before, text.data ? text.data : "");
		for (size_t i = 0; i < ARRAY_SIZE(members); i++) {
			json_t *value = JSON(members[i].value);
			int r = json_text_put(&text, members[i].path, value, journal);

			assert_true(r == 0 || r == -ENOTDIR);
			assert_int_equal(json_text_check(&text, &error), 0);
			json_decref(value);
		}
		assert_int_equal(undo_all(&text, journal), 0);
		assert_int_equal(text.size, before.size);
		assert_memory_equal(text.data, before.data, text.size);
		json_decref(journal);
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
		assert_int_equal(json_text_check(&text, &error), -EINVAL);
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
	assert_int_equal(json_text_check(&text, &error), -EINVAL);
	assert_int_equal(error.column, 8);
}

static void does_not_write_into_what_is_no_object(void **state)
{
	_cleanup_text_ struct text text = {0};
	json_t *journal = json_array(), *value = json_true();

	(void)state;
	begin(&text, "{\"runtimes\": [], \"features\": 1}");
	assert_int_equal(json_text_put(&text, "runtimes/nvidia", value, journal), -ENOTDIR);
	assert_int_equal(json_text_put(&text, "features/cdi", value, journal), -ENOTDIR);
	assert_int_equal(json_array_size(journal), 0);
	assert_string_equal(text.data, "{\"runtimes\": [], \"features\": 1}");
	json_decref(journal);
}

static void refuses_a_damaged_journal(void **state)
{
	static const char *const edits[] = {
		"{}", "[]", "17", "{\"do\": \"dance\", \"path\": \"\", \"leaf\": \"\", \"new\": \"\"}",
		"{\"do\": \"insert\", \"path\": \"\", \"leaf\": \"\", \"new\": \"\"}",
		"{\"do\": \"value\", \"path\": \"\", \"leaf\": \"\", \"new\": \"\"}",
	};
	_cleanup_text_ struct text text = {0};

	(void)state;
	begin(&text, "{}");
	for (size_t i = 0; i < ARRAY_SIZE(edits); i++) {
		json_t *damaged = JSON(edits[i]);

		assert_int_equal(json_text_undo(&text, damaged), -EINVAL);
		json_decref(damaged);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(puts_in_and_takes_out_again), cmocka_unit_test(changes_nothing_the_second_time),
		cmocka_unit_test(keeps_the_layout),            cmocka_unit_test(keeps_what_others_did_since),
		cmocka_unit_test(says_where_it_is_not_valid),  cmocka_unit_test(does_not_write_into_what_is_no_object),
		cmocka_unit_test(refuses_nul_characters),
		cmocka_unit_test(refuses_a_damaged_journal),   cmocka_unit_test(puts_into_any_layout_and_takes_out_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
