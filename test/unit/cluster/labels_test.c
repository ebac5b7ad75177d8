/* SPDX-License-Identifier: Apache-2.0 */

/* Names of products as Kubernetes' labels have them. */

#include "unit.h"

#include "cluster/plugin.h"

static void test_formatted(void **state)
{
	static const struct {
		const char *text;
		size_t max;
		const char *label;
	} cases[] = {
		{"NVIDIA H200", LABEL_MAX, "NVIDIA-H200"},
		{"Intel(R) Iris(R) Xe Graphics", LABEL_MAX, "Intel-R-Iris-R-Xe-Graphics"},
		{"(a) v1.5_x!", LABEL_MAX, "a-v1.5_x"},
		{"..", LABEL_MAX, ""},
		/* Where it is cut, too, it ends with a letter or a digit. */
		{"NVIDIA H200", 7, "NVIDIA"},
		{"v1.5", 3, "v1"},
		{"v1.5", 4, "v1.5"},
		{"a (b) c", 4, "a-b"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char label[LABEL_MAX + 1];

		label_format(cases[i].text, cases[i].max, label);
		assert_string_equal(label, cases[i].label);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_formatted),
	};

	return cmocka_run_group_tests_name("labels", tests, NULL, NULL);
}
