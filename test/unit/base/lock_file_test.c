/* SPDX-License-Identifier: Apache-2.0 */

/* Locks between processes: here between the open files of one, which exclude each other as well. */

#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/lock_file.h"

static char directory[] = "/tmp/ctr-gpu-lock.XXXXXX";

static int open_directory(mode_t mode)
{
	int fd;

	assert_int_equal(chmod(directory, mode), 0);
	fd = lock_file_open_directory(directory);
	assert_true(fd >= 0);
	return fd;
}

static void one_at_a_time_and_the_other_learns_whom_it_waited_for(void **state)
{
	_cleanup_close_ int home = open_directory(0755);
	pid_t holder = 0;
	struct stat st;
	int lock = lock_file_take(home, "lock", 0, &holder);

	(void)state;
	assert_true(lock >= 0);
	assert_int_equal(fstat(home, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	assert_int_equal(fstat(lock, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(lock_file_take(home, "lock", 50, &holder), -ETIMEDOUT);
	assert_int_equal(holder, getpid());
	lock_file_release(home, "lock", lock);
	assert_int_equal(faccessat(home, "lock", F_OK, 0), -1);
}

/* A link in the lock's place, and a lock in a directory that is gone. */
static void what_is_no_lock_is_none(void **state)
{
	_cleanup_close_ int home = open_directory(0700), other = -1;
	pid_t holder;

	(void)state;
	assert_int_equal(symlinkat("elsewhere", home, "link"), 0);
	assert_int_equal(lock_file_take(home, "link", 0, &holder), -ELOOP);
	assert_int_equal(unlinkat(home, "link", 0), 0);
	assert_int_equal(mkdirat(home, "gone", 0700), 0);
	other = openat(home, "gone", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(unlinkat(home, "gone", AT_REMOVEDIR), 0);
	assert_int_equal(lock_file_take(other, "lock", 0, &holder), -ENOENT);
}

static void another_users_directory_has_no_locks_of_ours(void **state)
{
	(void)state;
	if (geteuid() != 0)
		skip("needs root");
	assert_int_equal(chown(directory, 65534, 65534), 0);
	assert_int_equal(lock_file_open_directory(directory), -EPERM);
}

static int start(void **state)
{
	(void)state;
	return mkdtemp(directory) ? 0 : -1;
}

static int stop(void **state)
{
	(void)state;
	return rmdir(directory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_at_a_time_and_the_other_learns_whom_it_waited_for),
		cmocka_unit_test(what_is_no_lock_is_none),
		cmocka_unit_test(another_users_directory_has_no_locks_of_ours),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
