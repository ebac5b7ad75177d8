/* SPDX-License-Identifier: Apache-2.0 */

/* TOML of every layout made to say something else, and then what it said before. */

#include "unit.h"

#include "base/json.h"
#include "engines/text.h"

static void begin(struct text_buffer *text, const char *from)
{
	assert_int_equal(text_buffer_set(text, from, strlen(from)), 0);
}

/* Of a text that must be valid. */
static json_t *read_all(const struct text_buffer *text)
{
	struct text_buffer_error error;
	json_t *json = NULL;

	assert_int_equal(toml_parse_read(text, &json, &error), 0);
	return json;
}

/* The object of this name in another, made if it is missing; what else is there goes. */
static json_t *enter(json_t *json, const char *name)
{
	if (!json_is_object(json_object_get(json, name)))
		assert_int_equal(json_object_set_new(json, name, json_object()), 0);
	return json_object_get(json, name);
}

/* Return: whether the text says it then. */
static bool put_all(struct text_buffer *text)
{
	_cleanup_json_ json_t *json = read_all(text), *after = NULL;
	json_t *table = enter(enter(json, "p"), "a.b");
	struct text_buffer_error error;

	assert_int_equal(json_object_set_new(table, "enable_cdi", json_true()), 0);
	table = enter(enter(enter(table, "c"), "runtimes"), "nvidia");
	assert_int_equal(json_object_set_new(enter(table, "options"), "BinaryName", json_string("/r")), 0);
	return toml_edit_write(text, json) == 0 && toml_parse_read(text, &after, &error) == 0 &&
	       json_equal(after, json);
}

static const char *const layouts[] = {
	"",
	"\n",
	"# c",
	"# c\r\n",
	"version = 2",
	"version = 2\n",
	"version = 2\r\n\r\n[p]\r\n",
	"\xef\xbb\xbf",
	"\xef\xbb\xbf# c\n",
	"[p.\"a.b\"]",
	"[p.\"a.b\"]\n",
	"[p.\"a.b\"] # c\n  x = 1\n",
	"\t[p.\"a.b\"]\n\t\tx = 1\n\t\ty = [\n 2,\n]\n[z]\n",
	"[p.\"a.b\"]\nenable_cdi = false # no\n",
	"[p]\n\"a.b\".c.runtimes.x.y = 1\n[p.\"a.b\".c.d]",
	"[p.'a.b'.c.runtimes.nvidia.options]\n  BinaryName = '' \n  X = true\n",
	"[p.\"a.b\".c.runtimes.nvidia]\n  options = { BinaryName = \"x\", Y = 1 }",
	"[p.\"a.b\".c.runtimes.nvidia.options]",
	"[z]\na = '''\n[p.\"a.b\"]\n'''\n",
	"[[s]]\n[[s]]\n",
	"[p.\"a.b\"]\r\nx = 1",
	"[p.\"a.b\".c.runtimes.nvidia]\n[p.\"a.b\"]\n[q]\n",
	"[[p]]\n",
	"[p]\n[[p.\"a.b\"]]\nx = 1\n",
};

static bool is_closed(const char *layout)
{
	return strstr(layout, "\"a.b\".c.runtimes.x.y") != NULL;
}

static void puts_in_once(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(layouts); i++) {
		_cleanup_text_buffer_ struct text_buffer text = {0}, once = {0};

		begin(&text, layouts[i]);
		assert_int_equal(put_all(&text), !is_closed(layouts[i]));
		if (is_closed(layouts[i]))
			continue;
		assert_int_equal(text_buffer_set(&once, text.data, text.size), 0);
		assert_true(put_all(&text));
		assert_string_equal(text.data, once.data);
	}
}

static void takes_out_what_it_put_in(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(layouts); i++) {
		_cleanup_text_buffer_ struct text_buffer text = {0};

		begin(&text, layouts[i]);
		assert_int_equal(toml_edit_undo(&text, TOML_EDIT_RESTORE), TOML_EDIT_NOTHING);
		if (is_closed(layouts[i]))
			continue;
		assert_true(put_all(&text));
		assert_true(put_all(&text));
		assert_int_equal(toml_edit_undo(&text, TOML_EDIT_RESTORE), TOML_EDIT_DONE);
		assert_int_equal(text.size, strlen(layouts[i]));
		assert_memory_equal(text.data, layouts[i], strlen(layouts[i]));
	}
}

static void remembers_that_there_was_no_file(void **state)
{
	_cleanup_text_buffer_ struct text_buffer text = {0};

	(void)state;
	assert_true(put_all(&text));
	assert_true(put_all(&text));
	assert_int_equal(toml_edit_undo(&text, TOML_EDIT_RESTORE), TOML_EDIT_DONE);
	assert_null(text.data);
	assert_true(put_all(&text));
	assert_int_equal(text_buffer_splice(&text, 0, 0, "# mine\n", strlen("# mine\n")), 0);
	assert_int_equal(toml_edit_undo(&text, TOML_EDIT_RESTORE), TOML_EDIT_DONE);
	assert_string_equal(text.data, "# mine\n");
}

static void keeps_what_it_replaces_as_a_comment(void **state)
{
	_cleanup_text_buffer_ struct text_buffer text = {0};

	(void)state;
	begin(&text,
	      "[p.\"a.b\"]\nenable_cdi = false # no\n[p.'a.b'.c.runtimes.nvidia.options]\n  BinaryName = [\n1]\r\n");
	assert_true(put_all(&text));
	assert_string_equal(
		text.data,
		"[p.\"a.b\"]\n# ctr-gpu setup: enable_cdi = false # no\nenable_cdi = true # no # ctr-gpu setup\n"
		"[p.'a.b'.c.runtimes.nvidia.options]\n# ctr-gpu setup:   BinaryName = [\n# ctr-gpu setup: 1]\r\n"
		"  BinaryName = \"/r\" # ctr-gpu setup\n");
}

static void does_not_add_to_closed_tables(void **state)
{
	static const char *const closed[] = {
		"[p]\n\"a.b\" = {x = 1}",
		"p = {}",
		"[p]\n\"a.b\".x = 1",
		"p.\"a.b\".c = {runtimes = {}}\n[z]\n",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(closed); i++) {
		_cleanup_text_buffer_ struct text_buffer text = {0};

		begin(&text, closed[i]);
		assert_false(put_all(&text));
	}
}

static void writes_values(void **state)
{
	_cleanup_text_buffer_ struct text_buffer text = {0};
	_cleanup_json_ json_t *json = NULL, *table = NULL;

	(void)state;
	begin(&text, "[a]\r\nx = 1\r\ny = [\r\n 'l', # c\r\n]\r\nz = {\"b c\" = 1.5}\r\n[a.b]\r\n");
	json = read_all(&text);
	table = json_deep_copy(json_object_get(json, "a"));
	assert_int_equal(json_object_set(enter(json, "n.m"), "o", table), 0);
	assert_int_equal(json_object_set_new(json_object_get(json, "a"), "x", json_string("\"\n")), 0);
	assert_int_equal(toml_edit_write(&text, json), 0);
	assert_non_null(
		strstr(text.data, "[a]\r\n# ctr-gpu setup: x = 1\r\nx = \"\\\"\\n\" # ctr-gpu setup\r\ny = [\r\n 'l'"));
	assert_non_null(strstr(
		text.data, "\r\n[\"n.m\".o]\r\n  x = 1\r\n  y = [\"l\"]\r\n\r\n[\"n.m\".o.z]\r\n  \"b c\" = 1.5\r\n\r\n"
			   "[\"n.m\".o.b]\r\n# End"));
	json_decref(read_all(&text));
}

/* Puts @to in the place of @from, as somebody with an editor does. */
static void replace(struct text_buffer *text, const char *from, const char *to)
{
	const char *at = strstr(text->data, from);

	assert_non_null(at);
	assert_int_equal(text_buffer_splice(text, (size_t)(at - text->data), strlen(from), to, strlen(to)), 0);
}

static void takes_out_what_is_marked_among_changes_of_others(void **state)
{
	_cleanup_text_buffer_ struct text_buffer text = {0}, other = {0};

	(void)state;
	begin(&text, "x = 1\n[p.'a.b']\nenable_cdi = false");
	assert_true(put_all(&text));
	replace(&text, "x = 1", "x = 2");
	replace(&text, "/r", "/mine");
	replace(&text, "wrote.", "wrote.\n[z]");
	assert_int_equal(text_buffer_set(&other, text.data, text.size), 0);
	assert_int_equal(toml_edit_undo(&text, TOML_EDIT_KEEP_TABLES), TOML_EDIT_TABLES_STAY);
	assert_non_null(strstr(text.data, "x = 2\n[p.'a.b']\nenable_cdi = false\n\n# Written"));
	assert_non_null(strstr(text.data, "/mine"));
	assert_int_equal(toml_edit_undo(&other, TOML_EDIT_RESTORE), TOML_EDIT_DONE);
	assert_string_equal(other.data, "x = 2\n[p.'a.b']\nenable_cdi = false\n[z]");
}

/* What is not between both lines, or behind the wrong one, is not ours. */
static void takes_no_text_for_marked_that_is_not(void **state)
{
	static const char *const texts[] = {
		"# Written by \"ctr-gpu setup\", which takes it out again with --remove:\nx = 1\n",
		"# End of what \"ctr-gpu setup\" wrote.\nx = 1\n",
		"x = 1 # ctr-gpu setup was here\n",
		" # ctr-gpu setup: x = 1\n",
		"# ctr-gpu setup\nx = 1\n",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		_cleanup_text_buffer_ struct text_buffer text = {0};

		begin(&text, texts[i]);
		assert_int_equal(toml_edit_undo(&text, TOML_EDIT_RESTORE), TOML_EDIT_NOTHING);
		assert_string_equal(text.data, texts[i]);
	}
}

/* A second undo would find more, and setup's next run another file than the one before. */
static void takes_all_marks_out_at_once(void **state)
{
	static const struct {
		const char *from, *to;
	} texts[] = {
		{"# ctr-gpu setup: # ctr-gpu setup: x = 1\n", "x = 1\n"},
		{"x = 1\n# ctr-gpu setup: y = 2 # ctr-gpu setup\n", "x = 1\n"},
		{"# ctr-gpu setup: # Written by \"ctr-gpu setup\", which takes it out again with --remove:\nx = 1\n"
		 "# End of what \"ctr-gpu setup\" wrote.\ny = 2\n",
		 "y = 2\n"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		_cleanup_text_buffer_ struct text_buffer text = {0};

		begin(&text, texts[i].from);
		assert_int_equal(toml_edit_undo(&text, TOML_EDIT_RESTORE), TOML_EDIT_DONE);
		assert_string_equal(text.data, texts[i].to);
		assert_int_equal(toml_edit_undo(&text, TOML_EDIT_RESTORE), TOML_EDIT_NOTHING);
	}
}

static void takes_tables_out(void **state)
{
	_cleanup_text_buffer_ struct text_buffer text = {0};
	_cleanup_json_ json_t *json = NULL;

	(void)state;
	begin(&text, "a = 1\n[p.n]\nx = [\n1]\n# c\n[p.n.o]\ny = {z = 1}\n[p.nn]\nx = 1\na = 2\n[n]\na = 3\n");
	json = read_all(&text);
	assert_int_equal(json_object_del(json_object_get(json, "p"), "n"), 0);
	assert_int_equal(json_object_del(json_at(json, "p/nn"), "a"), 0);
	assert_int_equal(toml_edit_write(&text, json), 0);
	assert_int_equal(toml_edit_undo(&text, TOML_EDIT_FORGET), TOML_EDIT_DONE);
	assert_string_equal(text.data, "a = 1\n# c\n[p.nn]\nx = 1\n[n]\na = 3\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(puts_in_once),
		cmocka_unit_test(takes_out_what_it_put_in),
		cmocka_unit_test(remembers_that_there_was_no_file),
		cmocka_unit_test(keeps_what_it_replaces_as_a_comment),
		cmocka_unit_test(does_not_add_to_closed_tables),
		cmocka_unit_test(writes_values),
		cmocka_unit_test(takes_out_what_is_marked_among_changes_of_others),
		cmocka_unit_test(takes_no_text_for_marked_that_is_not),
		cmocka_unit_test(takes_all_marks_out_at_once),
		cmocka_unit_test(takes_tables_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
