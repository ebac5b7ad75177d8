/* SPDX-License-Identifier: Apache-2.0 */

/* What is known of engines: names, versions, what each gives of CDI. */

#include "unit.h"

#include <string.h>

#include "base/str.h"
#include "engines/engine.h"

static const struct engine *const all[] = {
	&engine_docker,   &engine_podman, &engine_containerd, &engine_crio,
	&engine_buildkit, &engine_lxc,    &engine_apptainer,
};

static void each_is_found_by_its_names(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		assert_ptr_equal(engine_find(all[i]->name, strlen(all[i]->name)), all[i]);
	assert_ptr_equal(engine_find("cri-o:1.30", 5), &engine_crio);
	assert_null(engine_find("cri-o:1.30", 6));
	assert_null(engine_find("dock", 4));
	assert_null(engine_find("", 0));
}

/* Whoever reads the tables relies on their order and their ends. */
static void tables_are_in_order(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		long last = 0;

		assert_non_null(all[i]->programs[0]);
		assert_non_null(all[i]->packages[0]);
		for (const struct engine_release *release = all[i]->releases; release && release->cdi; release++) {
			assert_true(ENGINE_VERSION(release->major, release->minor) > last);
			last = ENGINE_VERSION(release->major, release->minor);
			/* Nothing goes back to what must be turned on. */
			assert_true(release == all[i]->releases || !release->remark || release[-1].remark);
		}
	}
}

static void versions_are_numbers(void **state)
{
	static const struct {
		const char *text;
		long number;
	} cases[] = {
		{"28.2.1", ENGINE_VERSION(28, 2)},
		{"28", ENGINE_VERSION(28, 0)},
		{"20.10.24+dfsg1", ENGINE_VERSION(20, 10)},
		{"4.", ENGINE_VERSION(4, 0)},
		{"4.99999999999", ENGINE_VERSION(4, 999)},
		{"4.-1", ENGINE_VERSION(4, 999)},
		{"", 0},
		{"dev", 0},
		{"-3.1", 0},
		{"99999.1", 0},
		{"99999999999999999999", 0},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_int_equal(engine_version_number(cases[i].text), cases[i].number);
	assert_int_equal(engine_version_number(NULL), 0);
	assert_true(ENGINE_VERSION(28, 10) > ENGINE_VERSION(28, 2));
}

enum { UNSET = -1, OFF, ON };

static void cdi_by_version_and_setting(void **state)
{
	static const struct {
		const struct engine *engine;
		const char *version;
		int setting;
		enum engine_cdi_state expected;
	} cases[] = {
		{&engine_docker, "24.0.7", ON, ENGINE_CDI_NONE},
		{&engine_docker, "25.0.0", UNSET, ENGINE_CDI_OFF},
		{&engine_docker, "28.1.1", UNSET, ENGINE_CDI_OFF},
		{&engine_docker, "28.1.1", ON, ENGINE_CDI_ON},
		{&engine_docker, "28.2.0", UNSET, ENGINE_CDI_ON},
		{&engine_docker, "29.3.0", OFF, ENGINE_CDI_OFF},
		{&engine_docker, NULL, UNSET, ENGINE_CDI_UNKNOWN},
		{&engine_docker, NULL, ON, ENGINE_CDI_ON},
		{&engine_containerd, "1.6.20", ON, ENGINE_CDI_NONE},
		{&engine_containerd, "1.7.24", UNSET, ENGINE_CDI_OFF},
		{&engine_containerd, "1.7.24", ON, ENGINE_CDI_ON},
		{&engine_containerd, "2.0.0", UNSET, ENGINE_CDI_ON},
		{&engine_containerd, "2.1.0", OFF, ENGINE_CDI_OFF},
		{&engine_podman, "4.0.3", UNSET, ENGINE_CDI_NONE},
		{&engine_podman, "4.1.0", UNSET, ENGINE_CDI_ON},
		{&engine_podman, NULL, UNSET, ENGINE_CDI_ON},
		{&engine_crio, "1.23.0", UNSET, ENGINE_CDI_NONE},
		{&engine_crio, "1.24.0", UNSET, ENGINE_CDI_ON},
		{&engine_lxc, "5.0", UNSET, ENGINE_CDI_NONE},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_int_equal(
			engine_cdi_state(cases[i].engine, engine_version_number(cases[i].version), cases[i].setting),
			cases[i].expected);
}

static void specs_by_version(void **state)
{
	(void)state;
	assert_null(engine_cdi(&engine_docker, ENGINE_VERSION(24, 9)));
	assert_string_equal(engine_cdi(&engine_docker, ENGINE_VERSION(27, 3))->cdi, "0.7.0");
	assert_string_equal(engine_cdi(&engine_podman, ENGINE_VERSION(5, 4))->cdi, "0.8.0");
	assert_string_equal(engine_cdi(&engine_crio, ENGINE_VERSION(9, 0))->cdi, "1.0.0");
	assert_null(engine_cdi(&engine_apptainer, ENGINE_VERSION(9, 0)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_is_found_by_its_names), cmocka_unit_test(tables_are_in_order),
		cmocka_unit_test(versions_are_numbers),       cmocka_unit_test(cdi_by_version_and_setting),
		cmocka_unit_test(specs_by_version),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
