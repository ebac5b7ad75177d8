/* SPDX-License-Identifier: Apache-2.0 */

#include <stdio.h>

#include "ctr-gpu.h"
#include "unit.h"

static int read_table_size(void *user)
{
	FILE *file = fopen("/proc/self/status", "re");
	char line[256];
	int size = 0;

	(void)user;
	while (file && fgets(line, sizeof(line), file) && sscanf(line, "FDSize: %d", &size) != 1)
		;
	if (file)
		(void)fclose(file);
	return size >= 1024 ? 7 : 1;
}

/* What grows it later waits for an RCU grace period (expand_fdtable() of Linux). */
static void the_shared_table_of_descriptors_has_its_size(void **state)
{
	struct ctr_gpu_context *context;
	int status = 0;

	(void)state;
	assert_int_equal(ctr_gpu_context_new(&context), 0);
	assert_int_equal(ctr_gpu_run_in_child(context, read_table_size, NULL, &status), 0);
	assert_int_equal(status, 7);
	(void)ctr_gpu_context_unref(context);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_shared_table_of_descriptors_has_its_size),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
