/* SPDX-License-Identifier: Apache-2.0 */

/* Which runtimes hold the places of mounts that they have found, by what they say of themselves. */

#include "unit.h"

#include <time.h>

#include "scratch.h"
#include "system/program_output.h"

static void versions(void **state)
{
	static const struct {
		const char *text;
		bool known;
	} cases[] = {
		{"runc version 1.1.5+ds1\ncommit: 1.1.5+ds1-1+deb12u1\n", false},
		{"runc version 1.2.7\n", false},
		{"runc version 1.2.8\n", true},
		{"runc version 1.2.10\ngo: go1.24rc1\n", true},
		{"runc version 1.3.2\n", false},
		{"runc version 1.3.3+ds1\n", true},
		{"runc version 1.4.0-rc.2\n", false},
		{"runc version 1.4\n", true},
		{"runc version 1.10.0\n", true},
		{"runc version 2.0.0", true},
		{"runc version 0.99.99\n", false},
		{"crun version 1.7.2\n", false},
		{"crun version 1.8.1\ncommit: f8a0\n", true},
		{"crun version UNKNOWN\n", false},
		{"youki version 0.9.0\n", false},
		{"ctr-gpu-runtime version 0.1.0\nrunc version 1.4.0\n", false},
		{"runc version ", false},
		{"runc version 4294967297.9\n", false},
		{"", false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		if (oci_runtime_is_known(cases[i].text) != cases[i].known)
			fail_msg("%s", cases[i].text);
}

static int set_up(void **state)
{
	(void)state;
	return mount("tmpfs", "/run", "tmpfs", 0, "mode=755");
}

static int tear_down(void **state)
{
	(void)state;
	return umount2("/run", MNT_DETACH);
}

static void install(const char *script)
{
	int fd = open("/run/runc", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, script, strlen(script)), strlen(script));
	assert_int_equal(close(fd), 0);
}

/* Once for a file; another in its place is asked anew, and one that others can write is not. */
static void a_program_is_asked_once(void **state)
{
	struct timespec before, after;
	struct stat st;

	(void)state;
	install("#!/bin/sh\necho x >>/run/asked\necho runc version 1.4.0\n");
	assert_true(oci_runtime_holds_places("/run/runc"));
	assert_true(oci_runtime_holds_places("/run/runc"));
	assert_int_equal(stat("/run/asked", &st), 0);
	assert_int_equal(st.st_size, 2);
	install("#!/bin/sh\necho runc version 1.1.5\n");
	assert_false(oci_runtime_holds_places("/run/runc"));
	install("#!/bin/sh\nexit 1\n");
	assert_false(oci_runtime_holds_places("/run/runc"));
	/* One that goes on when it has said all is not waited for. */
	install("#!/bin/sh\necho runc version 1.4.0; exec sleep 100 >/dev/null 2>&1\n");
	assert_int_equal(clock_gettime(CLOCK_MONOTONIC, &before), 0);
	assert_true(oci_runtime_holds_places("/run/runc"));
	assert_int_equal(clock_gettime(CLOCK_MONOTONIC, &after), 0);
	assert_true(after.tv_sec - before.tv_sec < 20);
	assert_int_equal(chmod("/run/runc", 0777), 0);
	assert_false(oci_runtime_holds_places("/run/runc"));
	assert_false(oci_runtime_holds_places("/run/none"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(versions),
		cmocka_unit_test_setup_teardown(a_program_is_asked_once, set_up, tear_down),
	};
	int failed;

	scratch_enter();
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	scratch_remove();
	return failed;
}
