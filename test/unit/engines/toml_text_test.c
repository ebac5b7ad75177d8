/* SPDX-License-Identifier: Apache-2.0 */

/* TOML read where its keys are, and changed and given back byte for byte. */

#include "unit.h"

#include <errno.h>

#include "engines/toml_text.h"

static void begin(struct text *text, const char *from)
{
	assert_int_equal(text_set(text, from, strlen(from)), 0);
}

static void expect_valid(const struct text *text)
{
	struct text_error error = {0};

	assert_int_equal(toml_text_check(text, &error), 0);
}

/* ---- reading ---- */

static void finds_keys_however_they_are_written(void **state)
{
	static const struct {
		const char *text, *path, *value;
	} cases[] = {
		{"a = 1", "a", "1"},
		{"\"a\" = 'x' # c", "a", "'x'"},
		{"a.b . \"c.d\" = true\n", "a/b/c.d", "true"},
		{"[a.b]\nc = \"\"\"x\n\"\"\"\"\nd = 2", "a/b/d", "2"},
		{"[a]\nb = {c = [1, {d = 2}], e = {f = 3}}", "a/b/e/f", "3"},
		{"[a]\nb = {c = [1, {d = 2}]}", "a/b/c[1]/d", "2"},
		{"[[a]]\nb = 1\n[[a]]\nb = 2\n[a.c]\nd = 3\n", "a[1]/c/d", "3"},
		{"x = [ # c\n 1, # d\n\n]\ny = 1979-05-27 07:32:00.5Z\nz = +1e-3", "y", "1979-05-27 07:32:00.5Z"},
		{"[ \"a/b\" . 'c' ]\r\nd = inf\r\n", "a~1b/c/d", "inf"},
		{"\xef\xbb\xbf" "a = '''\n''x'''''\n", "a", "'''\n''x'''''"},
		{"a = \"\\\"#\" # b = 2\nc=-0x1F", "c", "-0x1F"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_text_ struct text text = {0};
		_cleanup_free_ char *value = NULL;

		begin(&text, cases[i].text);
		expect_valid(&text);
		assert_int_equal(toml_text_get(&text, cases[i].path, &value), 0);
		assert_string_equal(value, cases[i].value);
		assert_true(toml_text_mentions(&text, cases[i].path));
	}
}

static void says_where_it_is_not_valid(void **state)
{
	static const struct {
		const char *text;
		size_t line, column;
	} cases[] = {
		{"a", 1, 2},           {"a = \n", 1, 5},        {"\n[a\n", 2, 3},          {"a = 1 b = 2", 1, 7},
		{"a = \"x\n\"", 1, 7},  {"a = tru", 1, 5},       {"a = [1, 2", 1, 10},      {"a = {b = 1", 1, 11},
		{"a = 1\na = 2", 2, 1}, {"[a]\n[b]\n[a]", 3, 1}, {"a = 1\n[a]\n", 2, 1},    {"= 1", 1, 1},
		{"a = '\xff'", 1, 6},   {"a = 1\r", 1, 6},       {"[[a]\n", 1, 4},          {"a = '''x", 1, 9},
		{"a = \x01", 1, 5},     {"# \x01", 1, 3},        {"a = [1 2]", 1, 8},       {"\"\"\"a\"\"\" = 1", 1, 1},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_text_ struct text text = {0};
		struct text_error error = {0};

		begin(&text, cases[i].text);
		assert_int_equal(toml_text_check(&text, &error), -EINVAL);
		assert_int_equal(error.line, cases[i].line);
		assert_int_equal(error.column, cases[i].column);
		assert_true(strlen(error.reason) > 0);
	}
}

static void decodes_strings(void **state)
{
	_cleanup_text_ struct text text = {0};
	_cleanup_free_ char *basic = NULL, *literal = NULL, *none = NULL;

	(void)state;
	begin(&text, "a = \"x\\\"\\u00e4\"\nb = '/p\\q'\nc = 1\nd = ''");
	assert_int_equal(toml_text_get_string(&text, "a", &basic), 0);
	assert_string_equal(basic, "x\"\xc3\xa4");
	assert_int_equal(toml_text_get_string(&text, "b", &literal), 0);
	assert_string_equal(literal, "/p\\q");
	assert_int_equal(toml_text_get_string(&text, "c", &none), -ENOENT);
	assert_int_equal(toml_text_get_string(&text, "e", &none), -ENOENT);
}

/* ---- changing ---- */

static int put_all(struct text *text, json_t *journal)
{
	_cleanup_toml_edit_ struct toml_edit edit = {.text = text, .journal = journal};
	int r;

	r = toml_text_put(&edit, "p/a.b", "enable_cdi", "true");
	if (r == 0)
		r = toml_text_put(&edit, "p/a.b/c/runtimes/nvidia/options", "BinaryName", "\"/r\"");
	return r == 0 ? toml_text_finish(&edit) : r;
}

static int undo_all(struct text *text, const json_t *journal)
{
	int left = 0, r;

	for (size_t i = json_array_size(journal); i-- > 0;) {
		r = toml_text_undo(text, json_array_get(journal, i));
		assert_true(r >= 0);
		expect_valid(text);
		left += r;
	}
	return left;
}

static const char *const layouts[] = {
	"", "\n", "# c", "# c\r\n", "version = 2", "version = 2\n", "version = 2\r\n\r\n[p]\r\n", "\xef\xbb\xbf", "\xef\xbb\xbf# c\n", "[p.\"a.b\"]",
	"[p.\"a.b\"]\n", "[p.\"a.b\"] # c\n  x = 1\n", "\t[p.\"a.b\"]\n\t\tx = 1\n\t\ty = [\n 2,\n]\n[z]\n", "[p.\"a.b\"]\nenable_cdi = false # no\n",
	"[p]\n\"a.b\".c.runtimes.x.y = 1\n[p.\"a.b\".c.d]", "[p.'a.b'.c.runtimes.nvidia.options]\n  BinaryName = '' \n  X = true\n",
	"[p.\"a.b\".c.runtimes.nvidia]\n  options = { BinaryName = \"x\", Y = 1 }", "[p.\"a.b\".c.runtimes.nvidia.options]",
	"[z]\na = '''\n[p.\"a.b\"]\n'''\n", "[[s]]\n[[s]]\n", "[p.\"a.b\"]\r\nx = 1", "[p.\"a.b\".c.runtimes.nvidia]\n[p.\"a.b\"]\n[q]\n",
};

static void puts_in_and_takes_out_again(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(layouts); i++) {
		_cleanup_text_ struct text text = {0}, once = {0};
		_cleanup_free_ char *cdi = NULL, *binary = NULL;
		json_t *journal = json_array();
		size_t edits;

		begin(&text, layouts[i]);
		if (put_all(&text, journal) == -ENOTDIR) {
			assert_non_null(strstr(layouts[i], "\"a.b\".c.runtimes.x.y"));
			json_decref(journal);
			continue;
		}
		expect_valid(&text);
		assert_int_equal(toml_text_get(&text, "p/a.b/enable_cdi", &cdi), 0);
		assert_string_equal(cdi, "true");
		assert_int_equal(toml_text_get(&text, "p/a.b/c/runtimes/nvidia/options/BinaryName", &binary), 0);
		assert_string_equal(binary, "\"/r\"");
		edits = json_array_size(journal);
		assert_int_equal(text_set(&once, text.data, text.size), 0);
		assert_int_equal(put_all(&text, journal), 0);
		assert_int_equal(json_array_size(journal), edits);
		assert_string_equal(text.data, once.data);
		assert_int_equal(undo_all(&text, journal), 0);
		assert_int_equal(text.size, strlen(layouts[i]));
		assert_memory_equal(text.data, layouts[i], text.size);
		json_decref(journal);
	}
}

static void does_not_add_to_closed_tables(void **state)
{
	static const char *const closed[] = {
		"[p]\n\"a.b\" = {x = 1}", "p = {}", "[p]\n\"a.b\".x = 1", "p.\"a.b\".c = {runtimes = {}}\n[z]\n",
		"[[p]]\n", "[p]\n[[p.\"a.b\"]]\nx = 1\n",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(closed); i++) {
		_cleanup_text_ struct text text = {0};
		json_t *journal = json_array();

		begin(&text, closed[i]);
		expect_valid(&text);
		assert_int_equal(put_all(&text, journal), -ENOTDIR);
		assert_string_equal(text.data, closed[i]);
		json_decref(journal);
	}
}

/* Puts @to in the place of @from, as somebody with an editor does. */
static void replace(struct text *text, const char *from, const char *to)
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
		{"[p.\"a.b\"]\nx = 1\n", "x = 1", "x = 2", "[p.\"a.b\"]\nx = 2\n", 0},
		{"[p.\"a.b\"]\nx = 1\n", "enable_cdi = true", "enable_cdi  = true # mine", "[p.\"a.b\"]\nx = 1\n", 0},
		{"[p.\"a.b\"]\nx = 1\n", "enable_cdi = true\n", "", "[p.\"a.b\"]\nx = 1\n", 0},
		{"[p.\"a.b\"]\nx = 1\n", "enable_cdi = true", "enable_cdi = false", "[p.\"a.b\"]\nenable_cdi = false\nx = 1\n", 1},
		{"[p.\"a.b\"]\nenable_cdi = false\n", "cdi = true", "cdi = 1", "[p.\"a.b\"]\nenable_cdi = 1\n", 1},
		{"[p.\"a.b\"]\nenable_cdi = 0\n", "[p", "[z]\n[p", "[z]\n[p.\"a.b\"]\nenable_cdi = 0\n", 0},
		{"x = 1", "x = 1", "x = 1\ny = 2", "x = 1\ny = 2", 0},
		{"x = 1\n", "wrote.\n", "wrote.\n[z]\n", "x = 1\n[z]\n", 0},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_text_ struct text text = {0};
		json_t *journal = json_array();

		begin(&text, cases[i].layout);
		assert_int_equal(put_all(&text, journal), 0);
		replace(&text, cases[i].from, cases[i].to);
		assert_int_equal(undo_all(&text, journal), cases[i].kept);
		assert_string_equal(text.data, cases[i].left);
		json_decref(journal);
	}
}

static void leaves_a_block_that_somebody_has_changed(void **state)
{
	_cleanup_text_ struct text text = {0};
	json_t *journal = json_array();

	(void)state;
	begin(&text, "x = 1\n");
	assert_int_equal(put_all(&text, journal), 0);
	replace(&text, "/r", "/mine");
	assert_int_equal(undo_all(&text, journal), 1);
	assert_non_null(strstr(text.data, "/mine"));
	assert_int_equal(toml_text_forget(&text), 0);
	assert_string_equal(text.data, "x = 1\n\n");
	json_decref(journal);
}

static void takes_tables_out(void **state)
{
	_cleanup_text_ struct text text = {0};

	(void)state;
	begin(&text, "a = 1\n[p.n]\nx = [\n1]\n# c\n[p.n.o]\ny = {z = 1}\n[p.nn]\nx = 1\n");
	assert_int_equal(toml_text_remove_tables(&text, "p/n"), 0);
	assert_string_equal(text.data, "a = 1\n# c\n[p.nn]\nx = 1\n");
}

static void refuses_a_damaged_journal(void **state)
{
	static const char *const edits[] = {
		"{}", "{\"do\": \"dance\", \"leaf\": \"\", \"new\": \"\"}", "{\"do\": \"line\", \"leaf\": \"\", \"new\": \"\"}",
		"{\"do\": \"value\", \"leaf\": \"\", \"new\": \"\"}", "{\"do\": 1, \"leaf\": \"\", \"new\": \"\"}", "[]",
	};
	_cleanup_text_ struct text text = {0};

	(void)state;
	begin(&text, "a = 1");
	for (size_t i = 0; i < ARRAY_SIZE(edits); i++) {
		json_t *damaged = json_loads(edits[i], 0, NULL);

		assert_int_equal(toml_text_undo(&text, damaged), -EINVAL);
		json_decref(damaged);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_keys_however_they_are_written), cmocka_unit_test(says_where_it_is_not_valid),
		cmocka_unit_test(decodes_strings),                     cmocka_unit_test(puts_in_and_takes_out_again),
		cmocka_unit_test(does_not_add_to_closed_tables),       cmocka_unit_test(keeps_what_others_did_since),
		cmocka_unit_test(leaves_a_block_that_somebody_has_changed), cmocka_unit_test(takes_tables_out),
		cmocka_unit_test(refuses_a_damaged_journal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
