/* SPDX-License-Identifier: Apache-2.0 */

/* Whose pins are believed and removed: root's, and no others that somebody has put there. */

#include "scratch.h"

#include "guard/choice.h"
#include "guard/helper.h"
#include "guard/pins.h"

enum { SOMEBODY = 1000 };

/* In place of the BPF file system, in this program's mount namespace. */
static int begin(void **state)
{
	(void)state;
	assert_int_equal(mount("none", "/sys", "tmpfs", 0, NULL), 0);
	assert_int_equal(mkdir("/sys/fs", 0755), 0);
	assert_int_equal(mkdir(GUARD_BPFFS, 01777), 0);
	return 0;
}

static int end(void **state)
{
	(void)state;
	return umount2("/sys", MNT_DETACH);
}

static void make_file(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(close(fd), 0);
}

static void make_pins(void)
{
	assert_int_equal(mkdir(GUARD_PINS, 0700), 0);
	make_file(GUARD_CHOICES);
	make_file(GUARD_PRESENT);
	assert_int_equal(symlink("0", GUARD_PINS "/version"), 0);
}

static void expect_unbelieved(void)
{
	struct choices choices;

	assert_false(pins_are_roots());
	assert_false(helper_is_loaded());
	assert_int_equal(choices_open(&choices), -ENOENT);
}

static void pins_of_root_alone_are_believed(void **state)
{
	(void)state;
	expect_unbelieved();
	make_pins();
	assert_true(pins_are_roots());
	assert_true(helper_is_loaded());
	assert_int_equal(chown(GUARD_PINS, SOMEBODY, 0), 0);
	expect_unbelieved();
	assert_int_equal(chown(GUARD_PINS, 0, SOMEBODY), 0);
	assert_true(helper_is_loaded());
	assert_int_equal(chmod(GUARD_PINS, 0720), 0);
	expect_unbelieved();
	assert_int_equal(chmod(GUARD_PINS, 0702), 0);
	expect_unbelieved();
	assert_int_equal(chmod(GUARD_PINS, 0755), 0);
	assert_true(helper_is_loaded());
	assert_int_equal(rename(GUARD_PINS, GUARD_BPFFS "/other"), 0);
	assert_int_equal(symlink("other", GUARD_PINS), 0);
	expect_unbelieved();
}

static void pins_of_root_are_removed(void **state)
{
	(void)state;
	assert_int_equal(pins_remove(GUARD_PINS), 0);
	make_pins();
	assert_int_equal(pins_remove(GUARD_PINS), 0);
	assert_int_equal(access(GUARD_PINS, F_OK), -1);
	assert_int_equal(mkdir(GUARD_PINS, 0700), 0);
	make_file(GUARD_PRESENT);
	assert_int_equal(pins_remove(GUARD_PINS), 0);
	assert_int_equal(access(GUARD_PINS, F_OK), -1);
}

/* Directories cannot be, and whatever order they are found in, nobody takes the rest for a guard. */
static void choices_are_removed_first(void **state)
{
	(void)state;
	assert_int_equal(mkdir(GUARD_PINS, 0700), 0);
	assert_int_equal(mkdir(GUARD_PINS "/before", 0700), 0);
	make_file(GUARD_CHOICES);
	assert_int_equal(mkdir(GUARD_PINS "/behind", 0700), 0);
	assert_true(helper_is_loaded());
	assert_int_equal(pins_remove(GUARD_PINS), -EISDIR);
	assert_int_equal(access(GUARD_CHOICES, F_OK), -1);
	assert_false(helper_is_loaded());
}

static void links_and_directories_of_others_are_left(void **state)
{
	(void)state;
	assert_int_equal(mkdir(GUARD_BPFFS "/victim", 0700), 0);
	make_file(GUARD_BPFFS "/victim/file");
	assert_int_equal(symlink("victim", GUARD_PINS), 0);
	assert_int_equal(pins_remove(GUARD_PINS), -ENOTDIR);
	assert_int_equal(access(GUARD_BPFFS "/victim/file", F_OK), 0);
	assert_int_equal(unlink(GUARD_PINS), 0);
	make_pins();
	assert_int_equal(chown(GUARD_PINS, SOMEBODY, 0), 0);
	assert_int_equal(pins_remove(GUARD_PINS), -EPERM);
	assert_int_equal(access(GUARD_CHOICES, F_OK), 0);
	assert_int_equal(chown(GUARD_PINS, 0, 0), 0);
	assert_int_equal(chmod(GUARD_PINS, 0777), 0);
	assert_int_equal(pins_remove(GUARD_PINS), -EPERM);
	assert_int_equal(access(GUARD_CHOICES, F_OK), 0);
	make_file(GUARD_BPFFS "/file");
	assert_int_equal(pins_remove(GUARD_BPFFS "/file"), -ENOTDIR);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(pins_of_root_alone_are_believed, begin, end),
		cmocka_unit_test_setup_teardown(pins_of_root_are_removed, begin, end),
		cmocka_unit_test_setup_teardown(choices_are_removed_first, begin, end),
		cmocka_unit_test_setup_teardown(links_and_directories_of_others_are_left, begin, end),
	};
	int r;

	scratch_enter();
	r = cmocka_run_group_tests(tests, NULL, NULL);
	scratch_remove();
	return r;
}
