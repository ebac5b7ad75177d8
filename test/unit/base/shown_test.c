/* SPDX-License-Identifier: Apache-2.0 */

/* Foreign words on a terminal. */

#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/report.h"
#include "base/shown.h"

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
		shown_only(copy);
		assert_string_equal(copy, texts[i].shown);
	}
}

static void writes_text_alone(void **state)
{
	char *text = NULL;
	size_t size;
	FILE *file = open_memstream(&text, &size);

	(void)state;
	assert_non_null(file);
	report_write_text("A\302\2332J\033c", file);
	/* A comma has it quoted. */
	report_write_csv_field("B,\"\302\2332J\033c\n", file);
	assert_int_equal(fclose(file), 0);
	assert_string_equal(text, "A??2J?c\"B,\"\"??2J?c?\"");
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shows_text_alone),
		cmocka_unit_test(writes_text_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
