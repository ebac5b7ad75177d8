/* SPDX-License-Identifier: Apache-2.0 */

#include "unit.h"

#include "model/requirement.h"

static const struct driver_facts cuda_12_8 = {
	.cuda_major = 12,
	.cuda_minor = 8,
	.driver_version = (char *)"570.86.10",
	.architecture = (char *)"8.9",
	.brand = (char *)"geforce",
};

static void verdicts(void **state)
{
	static const struct {
		const char *requirement;
		enum requirement_result verdict;
	} cases[] = {
		{"", REQUIREMENT_MET},
		{"cuda>=12.8", REQUIREMENT_MET},
		{"cuda>=12", REQUIREMENT_MET},
		{"cuda>=12.9", REQUIREMENT_MINOR_ONLY},
		{"cuda>12.8", REQUIREMENT_MINOR_ONLY},
		{"cuda>=13.0", REQUIREMENT_UNMET},
		{"cuda<12", REQUIREMENT_UNMET},
		{"cuda=12.8", REQUIREMENT_MET},
		{"cuda!=12.8", REQUIREMENT_UNMET},
		{"cuda<=12.8.0", REQUIREMENT_MET},
		{"cuda>=12.10", REQUIREMENT_MINOR_ONLY},
		{"driver>=570", REQUIREMENT_MET},
		{"driver>=570.86.11", REQUIREMENT_UNMET},
		{"driver>=470,driver<471", REQUIREMENT_UNMET},
		{"driver>=470,driver<571", REQUIREMENT_MET},
		{"arch>=7.5", REQUIREMENT_MET},
		{"brand=GeForce", REQUIREMENT_MET},
		{"brand!=geforce", REQUIREMENT_UNMET},
		{"cuda>=13.0 brand=tesla,driver>=470", REQUIREMENT_UNMET},
		{"cuda>=13.0 brand=geforce,driver>=470", REQUIREMENT_MET},
		{"  brand=tesla   cuda>=12.4 ", REQUIREMENT_MET},
		/* What is empty between separators does not count, and a space separates alternatives behind a comma, too. */
		{"cuda>=12,", REQUIREMENT_MET},
		{",cuda>=12", REQUIREMENT_MET},
		{"cuda>=12,,driver>=570", REQUIREMENT_MET},
		{"cuda>=13, cuda>=12", REQUIREMENT_MET},
		{"cuda>=12 ,brand=tesla", REQUIREMENT_MET},
		{",", REQUIREMENT_MET},
		{"CUDA>=12,Brand!=tesla", REQUIREMENT_MET},
		{"cuda>=v12.8", REQUIREMENT_MET},
		{"driver>=570.86.10.0", REQUIREMENT_MET},
		/* As YAML writes texts of several lines. */
		{"cuda>=12.8\n", REQUIREMENT_MET},
		{"cuda>=13,\n", REQUIREMENT_UNMET},
		{"cuda>=13\r\nbrand=geforce\n", REQUIREMENT_MET},
		{"cuda>=4294967295", REQUIREMENT_UNMET},
		/* No host tells of a property that nobody knows. */
		{"cuda>=12 colour=red", REQUIREMENT_MET},
		{"colour=red cuda>=12", REQUIREMENT_MET},
		{"cuda>=12,colour=red", REQUIREMENT_UNKNOWN},
		{"cuda>=13,colour=red", REQUIREMENT_UNMET},
		{"cuda>=13 colour=red", REQUIREMENT_UNKNOWN},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct err err = {0};

		assert_int_equal(requirement_check_syntax(cases[i].requirement, &err), 0);
		if (requirement_check(cases[i].requirement, &cuda_12_8) != cases[i].verdict)
			fail_msg("\"%s\": %d", cases[i].requirement,
				 (int)requirement_check(cases[i].requirement, &cuda_12_8));
	}
}

static void what_is_not_told_is_unknown(void **state)
{
	const struct driver_facts nothing = {0}, cuda_only = {.cuda_major = 12, .cuda_minor = 8};

	(void)state;
	assert_int_equal(requirement_check("cuda>=12.0", &nothing), REQUIREMENT_UNKNOWN);
	assert_int_equal(requirement_check("cuda>=13.0 brand=tesla,driver>=470", &cuda_only), REQUIREMENT_UNKNOWN);
	assert_int_equal(requirement_check("cuda>=12.9 brand=tesla,driver>=470", &cuda_only), REQUIREMENT_MINOR_ONLY);
	assert_int_equal(requirement_check("cuda>=13.0,brand=tesla", &cuda_only), REQUIREMENT_UNMET);
}

static void bad_syntax_is_refused(void **state)
{
	static const char *const bad[] = {
		"cuda",
		"cuda>=",
		"cuda>=x",
		"cuda>=1e1",
		"cuda>=11.x",
		"cuda>=11..4",
		"cuda>=11.",
		"cuda>=-11",
		"cuda>=+11",
		"cuda>=0x11",
		"cuda>=4294967296",
		"cuda>=18446744073709551628",
		"cuda=>12",
		"cuda==12",
		"cuda!12",
		"cuda<>12",
		"cuda=",
		"cuda>=12 nonsense",
		"cuda>=12,,driver",
		"driver>=470.x cuda>=11",
		"arch>=sm_80",
		"brand=",
		"brand>tesla",
		"brand<=tesla",
		"=12",
		">=12",
		"gpu>=1",
		"colour=red,size=big",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct err err = {0};

		if (requirement_check_syntax(bad[i], &err) != CTR_GPU_E_BAD_REQUIREMENT)
			fail_msg("\"%s\" was accepted", bad[i]);
	}
}

static void what_a_newer_driver_may_meet(void **state)
{
	static const struct {
		const char *requirement;
		bool newer;
	} cases[] = {
		{"cuda>=13.0", true},
		{"cuda=13.0", true},
		{"cuda>13", true},
		{"cuda!=12.8", true},
		{"driver>=580", true},
		{"driver=570.86.11", true},
		{"driver>570.86.10", true},
		{"driver!=570.86.10", true},
		{"driver>=580,cuda>=12", true},
		{"brand=tesla,driver<571 cuda>=13.0,driver>=580", true},
		{"cuda>=13.0 brand=tesla,driver<571", true},
		{"driver<570", false},
		{"driver<570.86.10", false},
		{"cuda<12.8", false},
		{"driver<=550.90", false},
		{"cuda<12", false},
		{"cuda=12.4", false},
		{"arch>=9.0", false},
		{"brand=tesla", false},
		{"driver>=470,driver<471", false},
		{"cuda>=13.0,brand=tesla", false},
		{"brand=tesla,cuda>=13.0 driver>=470,driver<471", false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_int_equal(requirement_check(cases[i].requirement, &cuda_12_8), REQUIREMENT_UNMET);
		if (requirement_asks_for_newer(cases[i].requirement, &cuda_12_8) != cases[i].newer)
			fail_msg("\"%s\"", cases[i].requirement);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(verdicts),
		cmocka_unit_test(what_is_not_told_is_unknown),
		cmocka_unit_test(bad_syntax_is_refused),
		cmocka_unit_test(what_a_newer_driver_may_meet),
	};

	return cmocka_run_group_tests_name("requirement", tests, NULL, NULL);
}
