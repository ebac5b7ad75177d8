/* SPDX-License-Identifier: Apache-2.0 */

/* A file under a temporary name, also where a filesystem refuses what is asked of it. */

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "root/atomic_file.h"
#include "unit.h"

static bool refuses;

int __real_fchmod(int fd, mode_t mode);
int __wrap_fchmod(int fd, mode_t mode);

int __wrap_fchmod(int fd, mode_t mode)
{
	if (!refuses)
		return __real_fchmod(fd, mode);
	errno = EPERM;
	return -1;
}

static void test_a_mode_that_is_refused_leaves_nothing(void **state)
{
	char path[] = "/tmp/atomic_file_XXXXXX", name[ATOMIC_FILE_SIZE];
	struct stat st;
	int parent, fd;

	(void)state;
	assert_non_null(mkdtemp(path));
	parent = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	refuses = true;
	assert_int_equal(atomic_file_open(-1, parent, 0644, name, NULL), -EPERM);
	/* No file is left in it. */
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(close(parent), 0);
	assert_int_equal(mkdir(path, 0700), 0);
	parent = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	refuses = false;
	fd = atomic_file_open(-1, parent, 0644, name, NULL);
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0644);
	assert_int_equal(unlinkat(parent, name, 0), 0);
	(void)close(fd);
	(void)close(parent);
	assert_int_equal(rmdir(path), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_mode_that_is_refused_leaves_nothing),
	};

	return cmocka_run_group_tests_name("atomic_file", tests, NULL, NULL);
}
