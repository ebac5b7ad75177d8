/* SPDX-License-Identifier: Apache-2.0 */

/* Findings as checks add them, of words that others wrote. */

#include "unit.h"

#include "base/json.h"
#include "model/finding.h"

static struct findings findings;

static int begin(void **state)
{
	(void)state;
	findings = (struct findings){0};
	return 0;
}

static void expect(const char *text, const char *remedy)
{
	const struct finding *last = &findings.items[findings.count - 1];

	assert_false(findings.incomplete);
	assert_string_equal(last->text, text);
	if (remedy)
		assert_string_equal(last->remedy, remedy);
	else
		assert_null(last->remedy);
}

static void a_line_and_what_to_do(void **state)
{
	(void)state;
	findings_add(&findings, "a.b", SEVERITY_NOTE, "%s is %d", "it", 3);
	expect("it is 3", NULL);
	findings_add(&findings, "a.c", SEVERITY_PROBLEM, "%s is %d\ndo %s", "it", 3, "this");
	expect("it is 3", "do this");
	assert_string_equal(findings.items[1].id, "a.c");
	assert_null(findings.items[1].engine);
	findings_close(&findings, "docker", METHOD(GPUS));
	assert_string_equal(findings.items[1].engine, "docker");
	assert_null(findings_block(&findings));
}

/* A newline that was found begins no advice. */
static void newlines_of_others(void **state)
{
	(void)state;
	findings_add(&findings, "a", SEVERITY_NOTE, "%s is there\nremove %s", "/x\nsudo rm -rf /", "/y\nz");
	expect("/x\nsudo rm -rf / is there", "remove /y\nz");
	findings_add(&findings, "a", SEVERITY_NOTE, "%s", "/x\nsudo rm -rf /");
	expect("/x\nsudo rm -rf /", NULL);
	findings_add(&findings, "a", SEVERITY_NOTE, "%s\n%s", "", "");
	expect("", "");
}

static void messages_of_the_library(void **state)
{
	(void)state;
	findings_add_message(&findings, "a", SEVERITY_NOTE, "one line");
	expect("one line", NULL);
	findings_add_message(&findings, "a", SEVERITY_NOTE, "what\ndo this\nor %s that");
	expect("what", "do this or %s that");
}

/* JSON has no place for other bytes, and findings in which they are stay. */
static void what_is_not_utf8(void **state)
{
	json_t *json;

	(void)state;
	findings_add(&findings, "a", SEVERITY_NOTE, "a GPU called \xff\xc3\xa4 here\ndo %s", "\xfe");
	expect("a GPU called ??? here", "do ?");
	findings_add(&findings, "b", SEVERITY_NOTE, "caf\xc3\xa9");
	expect("caf\xc3\xa9", NULL);
	json = findings_to_json(&findings);
	assert_int_equal(json_array_size(json), 2);
	assert_string_equal(json_string_value(json_object_get(json_array_get(json, 0), "remedy")), "do ?");
	json_decref(json);
}

static void more_than_there_is_room_for(void **state)
{
	static char text[FINDING_TEXT_MAX];

	(void)state;
	for (int i = 1; i < FINDINGS_MAX; i++)
		findings_add(&findings, "a", SEVERITY_NOTE, "b");
	assert_null(findings_block(&findings));
	/* What does not fit may be a problem. */
	for (int i = 0; i < 2; i++) {
		findings_add(&findings, "a", SEVERITY_NOTE, "b");
		findings_close(&findings, "c", 1);
		assert_int_equal(findings.count, FINDINGS_MAX);
		assert_non_null(findings_block(&findings));
		assert_string_equal(findings_block(&findings)->id, "doctor.full");
		assert_non_null(findings_block(&findings)->remedy);
	}
	assert_false(findings.incomplete);

	findings = (struct findings){0};
	memset(text, 'x', sizeof(text) - 1);
	findings_add(&findings, "a", SEVERITY_NOTE, "%s\nand %s", text, text);
	expect(text, NULL);
	findings_add(&findings, "a", SEVERITY_NOTE, "%.*s\nand %s", FINDING_TEXT_MAX - 4, text, text);
	assert_string_equal(findings.items[1].remedy, "an");

	findings = (struct findings){0};
	for (int i = 0; i < FINDINGS_ENGINES_MAX + 2; i++)
		(void)findings_add_engine(&findings, "a", "A");
	assert_true(findings.incomplete);
	assert_int_equal(findings.engine_count, FINDINGS_ENGINES_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_line_and_what_to_do, begin),
		cmocka_unit_test_setup(newlines_of_others, begin),
		cmocka_unit_test_setup(messages_of_the_library, begin),
		cmocka_unit_test_setup(what_is_not_utf8, begin),
		cmocka_unit_test_setup(more_than_there_is_room_for, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
