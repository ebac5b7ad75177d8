/* SPDX-License-Identifier: Apache-2.0 */

/* Foreign words on a terminal. */

#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/print.h"
#include "base/str.h"

static const struct {
	const char *text, *shown;
} texts[] = {
	{"caf\303\251 \342\202\254 \360\237\230\200", "caf\303\251 \342\202\254 \360\237\230\200"},
	{"\033]0;owned\a\033[2J\r\n\t\177", "?]0;owned??[2J????"},
	/* The second set of control characters, in UTF-8 and as terminals of ISO 8859 take it. */
	{"a\302\23331m b\23331m", "a??31m b?31m"},
	{"\302\200\302\237\302\240", "????\302\240"},
	/* What shows "gpj.exe" as "exe.jpg", and lines that are no lines. */
	{"\342\200\256gpj.exe \342\201\246 \342\200\250 \330\234", "???gpj.exe ??? ??? ??"},
	/* Too long, a half of a pair, beyond the last, cut off. */
	{"\300\233 \340\202\233 \355\240\200 \364\220\200\200 \370\210\200\200\200 \342\202",
	 "?? ??? ??? ???? ????? ??"},
};

static void shows_text_alone(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		char copy[64];

		(void)snprintf(copy, sizeof(copy), "%s", texts[i].text);
		printable_only(copy);
		assert_string_equal(copy, texts[i].shown);
	}
}

static void tells_text_from_all_else(void **state)
{
	static const char *const shown[] = {"", " ~", "/usr/lib/lib\303\251.so", "\360\237\246\200"};
	static const char *const hidden[] = {"\n", "a\033[0m", "a\177", "\302\205", "a\377b", "a\303", "\342\200\256x"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(shown); i++)
		assert_true(printable_is_all(shown[i]));
	for (size_t i = 0; i < ARRAY_SIZE(hidden); i++)
		assert_false(printable_is_all(hidden[i]));
}

static void writes_text_alone(void **state)
{
	char *text = NULL;
	size_t size;
	FILE *file = open_memstream(&text, &size);

	(void)state;
	assert_non_null(file);
	print_write_text("A\302\2332J\033c", file);
	/* A comma has it quoted. */
	print_write_csv_field("B,\"\302\2332J\033c\n", file);
	assert_int_equal(fclose(file), 0);
	assert_string_equal(text, "A??2J?c\"B,\"\"??2J?c?\"");
	free(text);
}

/* The only line break is the one at the end of the format, whatever is longer than a line. */
static void prints_one_line(void **state)
{
	_cleanup_free_ char *text = NULL, *paths = malloc(2 * PRINT_LINE_MAX);
	size_t size;
	FILE *file = open_memstream(&text, &size);

	(void)state;
	assert_non_null(file);
	assert_non_null(paths);
	print_safe(file, "%s is %d\n", "/a\n/b\033[1m", 7);
	print_safe(file, "%s", "\n");
	print_safe(file, "\n");
	assert_int_equal(fflush(file), 0);
	assert_string_equal(text, "/a?/b?[1m is 7\n?\n");
	memset(paths, '\n', 2 * PRINT_LINE_MAX);
	paths[2 * PRINT_LINE_MAX - 1] = '\0';
	rewind(file);
	print_safe(file, "%s\n", paths);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(size, PRINT_LINE_MAX);
	assert_int_equal(strspn(text, "?"), PRINT_LINE_MAX - 1);
	assert_int_equal(text[size - 1], '\n');
}

/* The same document to a program, and nothing to a terminal. */
static void writes_json_that_a_terminal_does_not_obey(void **state)
{
	static const char foreign[] = "caf\303\251 \302\23331m \177 \342\200\256 \357\273\277 \360\237\230\200";
	char *text = NULL;
	size_t size;
	FILE *file = open_memstream(&text, &size);
	json_t *json;

	(void)state;
	assert_non_null(file);
	assert_int_equal(print_write_json(json_pack("{s:s}", "name", foreign), file), 0);
	assert_int_equal(fclose(file), 0);
	assert_string_equal(text,
			    "{\n  \"name\": \"caf\303\251 \\u009b31m \\u007f \\u202e \\ufeff \360\237\230\200\"\n}\n");
	json = json_loads(text, 0, NULL);
	assert_string_equal(json_string_value(json_object_get(json, "name")), foreign);
	json_decref(json);
	free(text);
}

/* A file's name may be any bytes. */
static void what_is_not_utf8_is_told_all_the_same(void **state)
{
	json_t *json = print_string("a\377b\303\251\033");

	(void)state;
	assert_string_equal(json_string_value(json), "a?b\303\251?");
	json_decref(json);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shows_text_alone),
		cmocka_unit_test(tells_text_from_all_else),
		cmocka_unit_test(writes_text_alone),
		cmocka_unit_test(prints_one_line),
		cmocka_unit_test(writes_json_that_a_terminal_does_not_obey),
		cmocka_unit_test(what_is_not_utf8_is_told_all_the_same),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
