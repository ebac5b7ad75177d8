/* SPDX-License-Identifier: Apache-2.0 */

/* Which step of a Slurm job a process is in, by its cgroups. */

#include "unit.h"

#include <errno.h>

#include "system/slurm_record.h"

static void assert_step(const char *membership, const char *job, const char *step)
{
	struct slurm_step found = {.job = "none", .step = "none"};
	int r = slurm_step_find(membership, &found);

	assert_int_equal(r, job ? 0 : -ENOENT);
	assert_string_equal(found.job, job ? job : "none");
	assert_string_equal(found.step, step ? step : "none");
}

static void test_step(void **state)
{
	(void)state;
	assert_step("6:freezer:/\n5:devices:/slurm_node1/uid_0/job_12/step_0/task_0\n0::/\n", "12", "0");
	assert_step("0::/system.slice/slurmstepd.scope/job_7/step_batch/user/task_0\n", "7", "batch");
	assert_step("0::/system.slice/node1_slurmstepd.scope/job_4294967295/step_3+1/slurm", "4294967295", "3+1");
	assert_step("5:devices:/slurm/uid_0/job_1\n4:memory:/slurm/uid_0/job_1/step_2\n", "1", "2");
}

static void test_no_step(void **state)
{
	char long_name[200];

	(void)state;
	assert_step("", NULL, NULL);
	assert_step("0::/\n5:devices:/docker/0123\n", NULL, NULL);
	assert_step("0::/job_1/step_0", NULL, NULL); /* a user's own */
	assert_step("5:devices:/slurm/job_1/extern/step_0", NULL, NULL);
	assert_step("5:devices:/slurm/job_/step_0", NULL, NULL);
	assert_step("5:devices:/slurm/job_1/step_", NULL, NULL);
	assert_step("5:devices:/slurm/job_1/step_.", NULL, NULL);
	assert_step("5:devices:/slurm/job_1/step_0.x/task_0", NULL, NULL);
	(void)snprintf(long_name, sizeof(long_name), "0::/slurm/job_%0*d/step_0", 100, 1);
	assert_step(long_name, NULL, NULL);
}

static void test_names(void **state)
{
	struct slurm_step step;

	(void)state;
	assert_int_equal(slurm_step_set("1", "batch", &step), 0);
	assert_int_equal(slurm_step_set("1", "../2", &step), -EINVAL);
	assert_int_equal(slurm_step_set("", "0", &step), -EINVAL);
	assert_int_equal(slurm_step_set("1", "01234567890123456789012345678901", &step), -EINVAL);
}

static void test_path(void **state)
{
	(void)state;
	assert_int_equal(slurm_step_path("slurm_n/uid_0/job_12/step_0/task_0"), strlen("slurm_n/uid_0/job_12/step_0"));
	assert_int_equal(slurm_step_path("slurm_n/uid_0/job_12/step_0"), strlen("slurm_n/uid_0/job_12/step_0"));
	assert_int_equal(slurm_step_path("slurm_n/uid_0/job_12"), 0);
	assert_int_equal(slurm_step_path(""), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_step),
		cmocka_unit_test(test_no_step),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_path),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
