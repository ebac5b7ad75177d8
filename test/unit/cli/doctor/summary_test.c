/* SPDX-License-Identifier: Apache-2.0 */

/* What follows from an engine's doors and the findings that close them. */

#include "unit.h"

#include <stdlib.h>

#include "cli/doctor/doctor.h"

static struct findings findings;

static int begin(void **state)
{
	(void)state;
	findings.engines[findings.engine_count++] = (struct host_engine){
		.id = "docker",
		.label = "Docker",
		.methods = {[METHOD_GPUS] = "--gpus all",
			    [METHOD_RUNTIME] = "--runtime=nvidia",
			    [METHOD_CDI] = "--device x"},
	};
	return 0;
}

static int end(void **state)
{
	(void)state;
	findings = (struct findings){0};
	return 0;
}

static void add(const char *id, enum severity severity, const char *engine, unsigned methods)
{
	findings_add(&findings, id, severity, "of %s\nmend %s", id, id);
	if (engine)
		findings_close(&findings, engine, methods);
}

static void expect(bool works, enum severity severity, const char *text, const char *remedy)
{
	struct summary verdict = summary_make(&findings, &findings.engines[0]);
	_cleanup_free_ char *told = summary_text(&findings, &verdict, false);

	assert_int_equal(verdict.works, works);
	assert_int_equal(verdict.severity, severity);
	assert_string_equal(told, text);
	if (remedy)
		assert_string_equal(summary_remedy(&verdict), remedy);
	else
		assert_null(summary_remedy(&verdict));
	assert_int_equal(summary_first(&findings) == NULL, works);
}

static void every_door_is_open(void **state)
{
	(void)state;
	/* None of these closes one. */
	add("a", SEVERITY_WARNING, NULL, 0);
	add("b", SEVERITY_PROBLEM, "podman", ALL_METHODS);
	add("c", SEVERITY_PROBLEM, "docker", METHOD(CLI));
	expect(true, SEVERITY_OK, "yes by --gpus all, --runtime=nvidia, --device x", NULL);
}

static void some_are_closed(void **state)
{
	(void)state;
	add("a", SEVERITY_NOTE, ANY_ENGINE, METHOD(CDI));
	expect(true, SEVERITY_OK, "yes by --gpus all, --runtime=nvidia; by --device x no, because of a", NULL);
	/* What is the engine's own goes before what every engine lacks, and what is worse before both. */
	add("b", SEVERITY_NOTE, "docker", METHOD(CDI));
	expect(true, SEVERITY_OK, "yes by --gpus all, --runtime=nvidia; by --device x no, because of b", NULL);
	add("c", SEVERITY_PROBLEM, "docker", METHOD(GPUS) | METHOD(CDI));
	expect(true, SEVERITY_WARNING, "yes by --runtime=nvidia; by --gpus all, --device x no, because of c", "mend c");
}

static void all_are_closed(void **state)
{
	(void)state;
	add("a", SEVERITY_NOTE, "docker", METHOD(GPUS));
	add("b", SEVERITY_NOTE, "docker", METHOD(RUNTIME));
	add("c", SEVERITY_NOTE, ANY_ENGINE, METHOD(CDI));
	expect(false, SEVERITY_NOTE, "no, because of a", "mend a");
	assert_string_equal(summary_first(&findings)->id, "a");
	add("d", SEVERITY_PROBLEM, "docker", METHOD(CDI));
	expect(false, SEVERITY_PROBLEM, "no, because of d", "mend d");
	add("e", SEVERITY_PROBLEM, "docker", METHOD(RUNTIME));
	expect(false, SEVERITY_PROBLEM, "by --runtime=nvidia no, because of e; by --device x no, because of d",
	       "mend e");
}

static void the_machine_closes_all(void **state)
{
	(void)state;
	add("a", SEVERITY_NOTE, "docker", METHOD(GPUS));
	add("b", SEVERITY_PROBLEM, NULL, 0);
	expect(false, SEVERITY_PROBLEM, "no, as above; then yes by --runtime=nvidia, --device x", NULL);
	assert_string_equal(summary_first(&findings)->id, "b");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(every_door_is_open, begin, end),
		cmocka_unit_test_setup_teardown(some_are_closed, begin, end),
		cmocka_unit_test_setup_teardown(all_are_closed, begin, end),
		cmocka_unit_test_setup_teardown(the_machine_closes_all, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
