/* SPDX-License-Identifier: Apache-2.0 */

/* What is said where NVIDIA's GPUs cannot be watched. */

#include "scratch.h"

#include "cluster/plugin.h"

static int begin(void **state)
{
	(void)state;
	assert_int_equal(mount("none", "/sys", "tmpfs", 0, NULL), 0);
	assert_int_equal(mount("none", "/etc", "tmpfs", 0, "mode=755"), 0);
	assert_int_equal(mkdir("/sys/module", 0755), 0);
	assert_int_equal(mkdir("/sys/module/nvidia", 0755), 0);
	assert_int_equal(mkdir("/etc/ctr-gpu", 0755), 0);
	return 0;
}

static int end(void **state)
{
	(void)state;
	return umount2("/etc", MNT_DETACH) < 0 || umount2("/sys", MNT_DETACH) < 0;
}

static void test_wrong_settings(void **state)
{
	FILE *file = fopen("/etc/ctr-gpu/config.json", "we");
	struct xid_watch watch = XID_WATCH_NONE;

	(void)state;
	assert_non_null(file);
	(void)fputs("{\"mode\": ", file);
	assert_int_equal(fclose(file), 0);
	assert_false(xid_watch_serve(&watch));
	assert_non_null(watch.why);
	assert_non_null(strstr(watch.why, "/etc/ctr-gpu/config.json"));
	free(watch.why);
	free(watch.next_without);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_wrong_settings, begin, end),
	};
	int r;

	scratch_enter();
	r = cmocka_run_group_tests_name("xid watch", tests, NULL, NULL);
	scratch_remove();
	return r;
}
