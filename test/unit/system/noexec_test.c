/* SPDX-License-Identifier: Apache-2.0 */

#include "unit.h"

#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "system/noexec.h"

static char home[] = "/tmp/ctr-gpu-test-XXXXXX";

/* A tmpfs with the option, with a directory in it, in a mount namespace of our own. */
static void mount_it(void)
{
	_cleanup_free_ char *inner = NULL;

	if (geteuid() != 0 || unshare(CLONE_NEWNS) < 0)
		skip("needs root and a mount namespace of its own");
	if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		skip("wants / to be a mount point, which it is not in a plain chroot");
	assert_int_equal(mount("none", home, "tmpfs", MS_NOEXEC, NULL), 0);
	assert_int_equal(str_format(&inner, "%s/inner", home), 0);
	assert_int_equal(mkdir(inner, 0755), 0);
}

static int make_home(void **state)
{
	(void)state;
	return mkdtemp(home) ? 0 : -1;
}

static int remove_home(void **state)
{
	(void)state;
	(void)umount2(home, MNT_DETACH);
	return rmdir(home);
}

static void an_ordinary_mount_has_it_not(void **state)
{
	_cleanup_close_ int fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct plan plan = {0};

	(void)state;
	assert_false(noexec_is_set(fd));
	assert_false(noexec_is_set(-1));
	assert_int_equal(noexec_check(&plan, "/"), 0);
	assert_int_equal(noexec_check(&plan, "/nonexistent"), 0);
	assert_int_equal(plan.obstacle_count, 0);
}

static void the_mount_is_named_once(void **state)
{
	_cleanup_free_ char *inner = NULL, *file = NULL, *seen = NULL;
	struct plan plan = {0};

	(void)state;
	mount_it();
	assert_int_equal(str_format(&inner, "%s/inner", home), 0);
	assert_int_equal(str_format(&file, "%s/libcuda.so.1", inner), 0);
	assert_int_equal(noexec_check(&plan, inner), 0);
	assert_int_equal(noexec_check_around(&plan, file, &seen), 0);
	assert_string_equal(seen, inner);
	assert_int_equal(noexec_check_around(&plan, file, &seen), 0);
	assert_int_equal(plan.obstacle_count, 1);
	assert_string_equal(plan.obstacles[0].path, home);
	assert_null(plan.obstacles[0].library);
	assert_non_null(strstr(plan.obstacles[0].remedy, "remount,bind,exec"));
	plan_clear(&plan);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_ordinary_mount_has_it_not),
		cmocka_unit_test(the_mount_is_named_once),
	};

	return cmocka_run_group_tests(tests, make_home, remove_home);
}
