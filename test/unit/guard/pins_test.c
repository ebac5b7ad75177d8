/* SPDX-License-Identifier: Apache-2.0 */

/* Whose pins are believed and removed: root's, and no others that somebody has put there. */

#include "scratch.h"

#include "guard/choice.h"
#include "guard/helper.h"

#define DIRECTORY PINS_USUAL_FILE_SYSTEM "/" PINS_NAME
#define CHOICES DIRECTORY "/" GUARD_CHOICES_NAME

enum { SOMEBODY = 1000 };

static void mount_bpf(const char *path, const char *options)
{
	if (mount("bpf", path, "bpf", 0, options) < 0)
		skip("needs to mount a file system for BPF");
}

/* The usual one as mount(8) makes it, and none of ours, in this program's mount namespace. */
static int begin(void **state)
{
	(void)state;
	assert_int_equal(mount("none", "/sys", "tmpfs", 0, NULL), 0);
	assert_int_equal(mount("none", "/run", "tmpfs", 0, "mode=755"), 0);
	assert_int_equal(mkdir("/sys/fs", 0755), 0);
	assert_int_equal(mkdir(PINS_USUAL_FILE_SYSTEM, 0755), 0);
	assert_int_equal(mkdir("/run/ctr-gpu", 0700), 0);
	assert_int_equal(mkdir(PINS_OWN_FILE_SYSTEM, 0700), 0);
	mount_bpf(PINS_USUAL_FILE_SYSTEM, "mode=1777");
	return 0;
}

static int end(void **state)
{
	(void)state;
	(void)umount2("/run", MNT_DETACH);
	return umount2("/sys", MNT_DETACH);
}

/* The file system has symlinks besides pins. */
static void make_entry(const char *path)
{
	assert_int_equal(symlink("0", path), 0);
}

static void make_pins(void)
{
	assert_int_equal(mkdir(DIRECTORY, 0700), 0);
	make_entry(CHOICES);
	make_entry(DIRECTORY "/" GUARD_PRESENT_NAME);
}

static bool is_there(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0;
}

static void expect(bool believed, size_t place)
{
	size_t found = PINS_FILE_SYSTEMS;
	int fd = pins_open(&found);

	assert_int_equal(fd >= 0 ? 0 : fd, believed ? 0 : -ENOENT);
	assert_int_equal(found, believed ? place : PINS_FILE_SYSTEMS);
	if (fd >= 0)
		assert_int_equal(close(fd), 0);
}

static void pins_of_root_alone_are_believed(void **state)
{
	struct choices choices;

	(void)state;
	expect(false, 0);
	assert_int_equal(choices_open(&choices), -ENOENT);
	make_pins();
	expect(true, PINS_USUAL);
	assert_int_equal(chown(DIRECTORY, SOMEBODY, 0), 0);
	expect(false, 0);
	assert_int_equal(choices_open(&choices), -ENOENT);
	assert_int_equal(chown(DIRECTORY, 0, SOMEBODY), 0);
	expect(true, PINS_USUAL);
	assert_int_equal(chmod(DIRECTORY, 0720), 0);
	expect(false, 0);
	assert_int_equal(chmod(DIRECTORY, 0702), 0);
	expect(false, 0);
	assert_int_equal(chmod(DIRECTORY, 0755), 0);
	expect(true, PINS_USUAL);
	assert_int_equal(rename(DIRECTORY, PINS_USUAL_FILE_SYSTEM "/other"), 0);
	assert_int_equal(symlink("other", DIRECTORY), 0);
	expect(false, 0);
}

/* A directory with the right names of another file system is no guard. */
static void another_file_system_is_not_believed(void **state)
{
	(void)state;
	assert_int_equal(umount2(PINS_USUAL_FILE_SYSTEM, MNT_DETACH), 0);
	make_pins();
	expect(false, 0);
	assert_int_equal(pins_open_file_system(PINS_USUAL), -ENOENT);
}

/* What root has pinned where others may write is still known; the next pins go elsewhere. */
static void where_others_may_write_nothing_new_is_pinned(void **state)
{
	int fd;

	(void)state;
	assert_int_equal(pins_open_file_system(PINS_USUAL), -EPERM);
	assert_int_equal(pins_open_file_system(PINS_OWN), -ENOENT);
	mount_bpf(PINS_OWN_FILE_SYSTEM, "mode=700");
	fd = pins_open_file_system(PINS_OWN);
	assert_true(fd >= 0);
	assert_false(pins_are_others(fd));
	assert_int_equal(mkdir(DIRECTORY, 0700), 0);
	assert_int_equal(chown(DIRECTORY, SOMEBODY, 0), 0);
	assert_int_equal(mkdirat(fd, PINS_NAME, 0700), 0);
	expect(true, PINS_OWN);
	assert_int_equal(close(fd), 0);
	assert_int_equal(chmod(PINS_USUAL_FILE_SYSTEM, 0700), 0);
	fd = pins_open_file_system(PINS_USUAL);
	assert_true(fd >= 0);
	assert_true(pins_are_others(fd));
	assert_int_equal(rename(DIRECTORY, PINS_USUAL_FILE_SYSTEM "/" PINS_NEXT_NAME), 0);
	assert_true(pins_are_others(fd));
	assert_int_equal(close(fd), 0);
}

/* What nobody has attached is no guard, whatever it is called. */
static void pins_that_are_no_links_are_not_attached(void **state)
{
	(void)state;
	make_pins();
	assert_false(links_are_attached());
	make_entry(DIRECTORY "/guard_ioctl");
	assert_int_equal(symlink("1", DIRECTORY "/" LINKS_NOTE), 0);
	assert_false(links_are_attached());
	assert_false(helper_is_loaded());
}

static void pins_of_root_are_removed(void **state)
{
	(void)state;
	assert_int_equal(pins_remove(PINS_USUAL, PINS_NAME), 0);
	make_pins();
	assert_int_equal(pins_remove(PINS_USUAL, PINS_NAME), 0);
	assert_false(is_there(DIRECTORY));
	assert_int_equal(mkdir(DIRECTORY, 0700), 0);
	make_entry(DIRECTORY "/" GUARD_PRESENT_NAME);
	assert_int_equal(pins_remove(PINS_USUAL, PINS_NAME), 0);
	assert_false(is_there(DIRECTORY));
}

/* Directories cannot be, and whatever order they are found in, nobody takes the rest for a guard. */
static void choices_are_removed_first(void **state)
{
	(void)state;
	assert_int_equal(mkdir(DIRECTORY, 0700), 0);
	assert_int_equal(mkdir(DIRECTORY "/before", 0700), 0);
	make_entry(CHOICES);
	assert_int_equal(mkdir(DIRECTORY "/behind", 0700), 0);
	assert_true(pins_remove(PINS_USUAL, PINS_NAME) < 0);
	assert_false(is_there(CHOICES));
}

static void links_and_directories_of_others_are_left(void **state)
{
	(void)state;
	assert_int_equal(mkdir(PINS_USUAL_FILE_SYSTEM "/victim", 0700), 0);
	make_entry(PINS_USUAL_FILE_SYSTEM "/victim/entry");
	assert_int_equal(symlink("victim", DIRECTORY), 0);
	assert_int_equal(pins_remove(PINS_USUAL, PINS_NAME), 0);
	assert_true(is_there(PINS_USUAL_FILE_SYSTEM "/victim/entry"));
	assert_int_equal(unlink(DIRECTORY), 0);
	make_pins();
	assert_int_equal(chown(DIRECTORY, SOMEBODY, 0), 0);
	assert_int_equal(pins_remove(PINS_USUAL, PINS_NAME), 0);
	assert_true(is_there(CHOICES));
	assert_int_equal(chown(DIRECTORY, 0, 0), 0);
	assert_int_equal(chmod(DIRECTORY, 0777), 0);
	assert_int_equal(pins_remove(PINS_USUAL, PINS_NAME), 0);
	assert_true(is_there(CHOICES));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(pins_of_root_alone_are_believed, begin, end),
		cmocka_unit_test_setup_teardown(another_file_system_is_not_believed, begin, end),
		cmocka_unit_test_setup_teardown(where_others_may_write_nothing_new_is_pinned, begin, end),
		cmocka_unit_test_setup_teardown(pins_that_are_no_links_are_not_attached, begin, end),
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
