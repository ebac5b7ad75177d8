/* SPDX-License-Identifier: Apache-2.0 */

/* Keys and tables put into TOML of every layout, and the marked lines taken out again. */

#include "unit.h"

#include <errno.h>

#include "cli/setup/toml_file.h"
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

static int put_all(struct text *text)
{
	_cleanup_toml_file_ struct toml_file file = {.text = text};
	int r;

	r = toml_file_put(&file, "p/a.b", "enable_cdi", "true");
	if (r == 0)
		r = toml_file_put(&file, "p/a.b/c/runtimes/nvidia/options", "BinaryName", "\"/r\"");
	return r == 0 ? toml_file_finish(&file) : r;
}

static const char *const layouts[] = {
	"", "\n", "# c", "# c\r\n", "version = 2", "version = 2\n", "version = 2\r\n\r\n[p]\r\n", "\xef\xbb\xbf", "\xef\xbb\xbf# c\n", "[p.\"a.b\"]",
	"[p.\"a.b\"]\n", "[p.\"a.b\"] # c\n  x = 1\n", "\t[p.\"a.b\"]\n\t\tx = 1\n\t\ty = [\n 2,\n]\n[z]\n", "[p.\"a.b\"]\nenable_cdi = false # no\n",
	"[p]\n\"a.b\".c.runtimes.x.y = 1\n[p.\"a.b\".c.d]", "[p.'a.b'.c.runtimes.nvidia.options]\n  BinaryName = '' \n  X = true\n",
	"[p.\"a.b\".c.runtimes.nvidia]\n  options = { BinaryName = \"x\", Y = 1 }", "[p.\"a.b\".c.runtimes.nvidia.options]",
	"[z]\na = '''\n[p.\"a.b\"]\n'''\n", "[[s]]\n[[s]]\n", "[p.\"a.b\"]\r\nx = 1", "[p.\"a.b\".c.runtimes.nvidia]\n[p.\"a.b\"]\n[q]\n",
};

static void puts_in_once(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(layouts); i++) {
		_cleanup_text_ struct text text = {0}, once = {0};
		_cleanup_free_ char *cdi = NULL, *binary = NULL;

		begin(&text, layouts[i]);
		if (put_all(&text) == -ENOTDIR) {
			assert_non_null(strstr(layouts[i], "\"a.b\".c.runtimes.x.y"));
			continue;
		}
		expect_valid(&text);
		assert_int_equal(toml_text_get(&text, "p/a.b/enable_cdi", &cdi), 0);
		assert_string_equal(cdi, "true");
		assert_int_equal(toml_text_get(&text, "p/a.b/c/runtimes/nvidia/options/BinaryName", &binary), 0);
		assert_string_equal(binary, "\"/r\"");
		assert_int_equal(text_set(&once, text.data, text.size), 0);
		assert_int_equal(put_all(&text), 0);
		assert_string_equal(text.data, once.data);
	}
}

/* As other keys may have been written over, it is what setup remembers that gives these back. */
static void takes_out_lines_that_it_put_in(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(layouts); i++) {
		_cleanup_text_ struct text text = {0}, wrote = {0};

		begin(&text, layouts[i]);
		if (strstr(layouts[i], "enable_cdi") || strstr(layouts[i], "BinaryName") || put_all(&text) == -ENOTDIR)
			continue;
		assert_int_equal(text_set(&wrote, text.data, text.size), 0);
		assert_int_equal(toml_file_cut(&text, &wrote), 0);
		assert_int_equal(toml_file_set(&text, "p/a.b/enable_cdi", NULL), 0);
		assert_int_equal(toml_file_set(&text, "p/a.b/c/runtimes/nvidia/options/BinaryName", NULL), 0);
		/* A newline that had to end a header's line stays. */
		if (text.size == strlen(layouts[i]) + 1)
			assert_int_equal(text.data[text.size - 1], '\n');
		else
			assert_int_equal(text.size, strlen(layouts[i]));
		assert_memory_equal(text.data, layouts[i], strlen(layouts[i]));
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

		begin(&text, closed[i]);
		expect_valid(&text);
		assert_int_equal(put_all(&text), -ENOTDIR);
		assert_string_equal(text.data, closed[i]);
	}
}

static void copies_the_keys_of_a_table(void **state)
{
	static const char *const but[] = {"x", NULL};
	_cleanup_text_ struct text text = {0};
	_cleanup_toml_file_ struct toml_file file = {.text = &text};

	(void)state;
	begin(&text, "[a]\r\nx = 1\r\ny = [\r\n 'l', # c\r\n]\r\nz = {b = 1}\r\n[a.b]\r\nc = 1\r\n[aa]\r\nd = 1\r\n");
	assert_int_equal(toml_file_copy(&file, &text, "a", "n.m/o", but), 0);
	assert_int_equal(toml_file_finish(&file), 0);
	expect_valid(&text);
	assert_non_null(strstr(text.data, "\r\n[\"n.m\".o]\r\n  y = [\r\n 'l', # c\r\n]\r\n# End"));
}

/* Puts @to in the place of @from, as somebody with an editor does. */
static void replace(struct text *text, const char *from, const char *to)
{
	const char *at = strstr(text->data, from);

	assert_non_null(at);
	assert_int_equal(text_splice(text, (size_t)(at - text->data), strlen(from), to, strlen(to)), 0);
}

static void leaves_a_block_that_somebody_has_changed(void **state)
{
	_cleanup_text_ struct text text = {0}, wrote = {0};

	(void)state;
	begin(&text, "x = 1\n");
	assert_int_equal(put_all(&text), 0);
	assert_int_equal(text_set(&wrote, text.data, text.size), 0);
	replace(&text, "x = 1", "x = 2");
	replace(&text, "wrote.\n", "wrote.\n[z]\n");
	assert_int_equal(toml_file_cut(&text, &wrote), 0);
	assert_string_equal(text.data, "x = 2\n[z]\n");
	assert_int_equal(text_set(&text, wrote.data, wrote.size), 0);
	replace(&text, "/r", "/mine");
	assert_int_equal(toml_file_cut(&text, &wrote), 1);
	assert_non_null(strstr(text.data, "/mine"));
	assert_int_equal(toml_file_cut(&text, NULL), 0);
	assert_string_equal(text.data, "x = 1\n");
}

static void takes_tables_out(void **state)
{
	_cleanup_text_ struct text text = {0};

	(void)state;
	begin(&text, "a = 1\n[p.n]\nx = [\n1]\n# c\n[p.n.o]\ny = {z = 1}\n[p.nn]\nx = 1\n");
	assert_int_equal(toml_file_remove(&text, "p/n"), 0);
	assert_string_equal(text.data, "a = 1\n# c\n[p.nn]\nx = 1\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(puts_in_once),
		cmocka_unit_test(takes_out_lines_that_it_put_in),
		cmocka_unit_test(does_not_add_to_closed_tables),
		cmocka_unit_test(copies_the_keys_of_a_table),
		cmocka_unit_test(leaves_a_block_that_somebody_has_changed),
		cmocka_unit_test(takes_tables_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
