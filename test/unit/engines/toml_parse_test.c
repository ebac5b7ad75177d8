/* SPDX-License-Identifier: Apache-2.0 */

/* TOML read where its keys are. */

#include "unit.h"

#include <errno.h>

#include "base/json.h"
#include "engines/text.h"

static void begin(struct text_buffer *text, const char *from, struct toml *ret)
{
	struct text_buffer_error error = {0};

	assert_int_equal(text_buffer_set(text, from, strlen(from)), 0);
	assert_int_equal(toml_parse_scan(text, ret, &error), 0);
}

static void finds_keys_however_they_are_written(void **state)
{
	static const struct {
		const char *text, *table, *key, *value;
	} cases[] = {
		{"a = 1", "", "a", "1"},
		{"\"a\" = 'x' # c", "", "a", "'x'"},
		{"a.b . \"c.d\" = true\n", "a/b", "c.d", "true"},
		{"[a.b]\nc = \"\"\"x\n\"\"\"\"\nd = 2", "a/b", "d", "2"},
		{"[a]\nb = {c = [1, {d = 2}], e = {f = 3}}", "a/b/e", "f", "3"},
		{"x = [ # c\n 1, # d\n\n]\ny = 1979-05-27 07:32:00.5Z\nz = +1e-3", "", "y", "1979-05-27 07:32:00.5Z"},
		{"[ \"a.b\" . 'c' ]\r\nd = inf\r\n", "a.b/c", "d", "inf"},
		{"\xef\xbb\xbf"
		 "a = '''\n''x'''''\n",
		 "", "a", "'''\n''x'''''"},
		{"a = \"\\\"#\" # b = 2\nc=-0x1F", "", "c", "-0x1F"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_text_buffer_ struct text_buffer text = {0};
		_cleanup_toml_ struct toml toml = {0};
		const struct toml_entry *entry;

		begin(&text, cases[i].text, &toml);
		entry = toml_parse_find(&toml, *cases[i].table ? json_at(toml.root, cases[i].table) : toml.root,
					cases[i].key);
		assert_non_null(entry);
		assert_int_equal(entry->value_end - entry->value_start, strlen(cases[i].value));
		assert_memory_equal(text.data + entry->value_start, cases[i].value, strlen(cases[i].value));
	}
}

static void reads_values(void **state)
{
	static const char toml[] =
		"a = [ 'x', # c\n \"\\u00e4\", {b = [-17, true, 1_0]}, 0x1F, ]\nc.d = '''x'''\n[[t]]\n[[t.u]]\n[t.u.v]\n"
		"w = 1\n[[t]]\n[t.u]\nw = 2\n['e/f'.\"g[0\"]\nh = 1979-05-27 07:32:00\n"
		"[n]\na = 0b11\nb = 0o17\nc = +1_0.5e1\nd = -inf\ne = 99999999999999999999\n"
		"[s]\na = \"x\ty\\\"\\\\\"\nb = '/p\\q'\nc = \"\"\"\r\nx \\\n  y\n\"z\"\"\"\"\nd = \"\"\"\"\"\"\ne = \"\\U0001F600\"\n"
		"f = \"\\b\\t\\n\\f\\r\\u0041\"\n";
	static const char json[] =
		"{\"a\": [\"x\", \"\\u00e4\", {\"b\": [-17, true, 10]}, 31], \"c\": {\"d\": \"x\"}, "
		"\"t\": [{\"u\": [{\"v\": {\"w\": 1}}]}, {\"u\": {\"w\": 2}}], \"e/f\": {\"g[0\": {\"h\": null}}, "
		"\"n\": {\"a\": 3, \"b\": 15, \"c\": 105.0, \"d\": null, \"e\": null}, "
		"\"s\": {\"a\": \"x\\ty\\\"\\\\\", \"b\": \"/p\\\\q\", \"c\": \"x y\\n\\\"z\\\"\", \"d\": \"\", \"e\": null, "
		"\"f\": \"\\b\\t\\n\\f\\rA\"}}";
	_cleanup_text_buffer_ struct text_buffer text = {0};
	_cleanup_toml_ struct toml read = {0};
	_cleanup_json_ json_t *wanted = json_loads(json, 0, NULL);

	(void)state;
	begin(&text, toml, &read);
	assert_non_null(wanted);
	assert_true(json_equal(read.root, wanted));
}

static void says_where_it_is_not_valid(void **state)
{
	static const struct {
		const char *text;
		size_t line, column;
	} cases[] = {
		{"a", 1, 2},
		{"a = \n", 1, 5},
		{"\n[a\n", 2, 3},
		{"a = 1 b = 2", 1, 7},
		{"a = \"x\n\"", 1, 7},
		{"a = \"b\\\nc\"", 1, 8},
		{"a = tru", 1, 5},
		{"a = [1, 2", 1, 10},
		{"a = {b = 1", 1, 11},
		{"a = 1\na = 2", 2, 1},
		{"[a]\n[b]\n[a]", 3, 1},
		{"a = 1\n[a]\n", 2, 1},
		{"= 1", 1, 1},
		{"a = '\xff'", 1, 6},
		{"a = 1\r", 1, 6},
		{"[[a]\n", 1, 4},
		{"a = '''x", 1, 9},
		{"a = \x01", 1, 5},
		{"a.b = 1\n[a]", 2, 1},
		{"a = {}\n[a.b]", 2, 1},
		{"[[a]]\n[a]", 2, 1},
		{"a = []\n[[a]]", 2, 1},
		{"[a]\n[[a]]", 2, 1},
		{"a = {b = 1, b = 2}", 1, 13},
		{"a = 1\na.b = 2", 2, 1},
		{"# \x01", 1, 3},
		{"a = [1 2]", 1, 8},
		{"\"\"\"a\"\"\" = 1", 1, 1},
		{"a = \"x\\q\"", 1, 7},
		{"a = \"\\/\"", 1, 6},
		{"a = \"\\ \"", 1, 6},
		{"a = \"\\u12g4\"", 1, 6},
		{"a = \"\\U0001F60\"", 1, 6},
		{"a = \"\\x4\"", 1, 6},
		{"a = \"\"\"\\ x\n\"\"\"", 1, 8},
		{"a = \"\"\"\\ n\n\"\"\"", 1, 8},
		{"\"\\q\" = 1", 1, 2},
		{"a = \"\\", 1, 7},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_text_buffer_ struct text_buffer text = {0};
		struct text_buffer_error error = {0};
		json_t *json;

		assert_int_equal(text_buffer_set(&text, cases[i].text, strlen(cases[i].text)), 0);
		assert_int_equal(toml_parse_read(&text, &json, &error), -EINVAL);
		assert_int_equal(error.line, cases[i].line);
		assert_int_equal(error.column, cases[i].column);
		assert_true(strlen(error.reason) > 0);
	}
}

/* As deep as what reads it recurses. */
static void refuses_what_is_nested_too_deeply(void **state)
{
	static const struct {
		const char *before, *level, *behind;
	} cases[] = {{"[a", ".a", "]\n"}, {"a", ".a", " = 1"}, {"a = ", "[", ""}, {"a = ", "{a = ", ""}};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_text_buffer_ struct text_buffer text = {0};
		struct text_buffer_error error = {0};
		json_t *json;

		assert_int_equal(text_buffer_set(&text, cases[i].before, strlen(cases[i].before)), 0);
		for (int j = 0; j < 100; j++)
			assert_int_equal(
				text_buffer_splice(&text, text.size, 0, cases[i].level, strlen(cases[i].level)), 0);
		assert_int_equal(text_buffer_splice(&text, text.size, 0, cases[i].behind, strlen(cases[i].behind)), 0);
		assert_int_equal(toml_parse_read(&text, &json, &error), -EINVAL);
		assert_string_equal(error.reason, "nested too deeply");
	}
}

/* What is longer is not read: it would take minutes, and no engine has such a file. */
static void refuses_what_has_too_many_tables(void **state)
{
	enum { TABLES = 20000 };
	_cleanup_free_ char *data = malloc(TABLES * 16);
	_cleanup_text_buffer_ struct text_buffer text = {0};
	struct text_buffer_error error = {0};
	size_t size = 0;
	json_t *json;

	(void)state;
	for (int i = 0; i < TABLES; i++)
		size += (size_t)sprintf(data + size, "[a%d]\n", i);
	assert_int_equal(text_buffer_set(&text, data, size), 0);
	assert_int_equal(toml_parse_read(&text, &json, &error), -EINVAL);
	assert_int_equal(error.line, 16385);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_keys_however_they_are_written),
		cmocka_unit_test(says_where_it_is_not_valid),
		cmocka_unit_test(reads_values),
		cmocka_unit_test(refuses_what_is_nested_too_deeply),
		cmocka_unit_test(refuses_what_has_too_many_tables),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
