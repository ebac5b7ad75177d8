/* SPDX-License-Identifier: Apache-2.0 */

/* What is kept below /run, which is a tmpfs of the test's. */

#include "unit.h"

#include <sys/wait.h>

#include "scratch.h"
#include "system/machine.h"

#define FOLDER "/run/ctr-gpu"

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

static void put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, text, strlen(text)), 0);
	close(fd);
}

static void assert_kept(const char *name, const char *expected)
{
	char *text = NULL;
	int r = boot_cache_read(name, 100, &text, NULL);

	assert_int_equal(r, expected ? 0 : -ENOENT);
	if (expected)
		assert_string_equal(text, expected);
	free(text);
}

static void what_is_kept_is_read(void **state)
{
	(void)state;
	assert_kept("nvidia", NULL);
	boot_cache_write("nvidia", "first");
	boot_cache_write("nvidia", "second");
	assert_kept("nvidia", "second");
	boot_cache_remove("nvidia");
	assert_kept("nvidia", NULL);
}

/* Whoever was killed while it wrote has left a file, and nobody else would remove it before the next boot. */
static void what_killed_processes_left_goes(void **state)
{
	static const char *const others[] = {FOLDER "/nvidia.d", FOLDER "/nvidia.1x", FOLDER "/nvidia2.1",
					     FOLDER "/uuids.json.1", FOLDER "/1"};
	char own[64];

	(void)state;
	assert_int_equal(mkdir(FOLDER, 0700), 0);
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		put(others[i], "x");
	for (int i = 0; i < 100; i++) {
		char path[64];

		(void)snprintf(path, sizeof(path), FOLDER "/nvidia.%d", 1000000 + i);
		put(path, "half a fi");
	}
	(void)snprintf(own, sizeof(own), FOLDER "/nvidia.%d", (int)getpid());
	put(own, "of a process with our number that had much to write, and was killed");
	boot_cache_write("nvidia", "new");
	assert_kept("nvidia", "new");
	assert_int_equal(access(FOLDER "/nvidia.1000000", F_OK), -1);
	assert_int_equal(access(FOLDER "/nvidia.1000099", F_OK), -1);
	assert_int_equal(access(own, F_OK), -1);
	put(FOLDER "/nvidia.7", "half");
	boot_cache_remove("nvidia");
	assert_int_equal(access(FOLDER "/nvidia.7", F_OK), -1);
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		assert_int_equal(access(others[i], F_OK), 0);
}

/* Each whole, whatever the others do. */
static void processes_that_write_at_once(void **state)
{
	enum { WRITERS = 8, ROUNDS = 50 };
	pid_t writers[WRITERS];

	(void)state;
	for (int i = 0; i < WRITERS; i++) {
		writers[i] = fork();
		assert_true(writers[i] >= 0);
		for (int round = 0; writers[i] == 0 && round < ROUNDS; round++)
			boot_cache_write("nvidia", "the same text");
		if (writers[i] == 0)
			_exit(0);
	}
	for (int round = 0; round < ROUNDS; round++) {
		char *text = NULL;

		if (boot_cache_read("nvidia", 100, &text, NULL) == 0)
			assert_string_equal(text, "the same text");
		free(text);
	}
	for (int i = 0; i < WRITERS; i++)
		assert_int_equal(waitpid(writers[i], NULL, 0), writers[i]);
	boot_cache_write("nvidia", "the last");
	assert_kept("nvidia", "the last");
}

static void places_where_nothing_can_be_kept(void **state)
{
	_cleanup_free_ char *large = malloc(1 << 20);
	struct stat st;

	(void)state;
	assert_non_null(large);
	memset(large, 'x', (1 << 20) - 1);
	large[(1 << 20) - 1] = '\0';
	/* A full /run: what was kept stays, and nothing of the new. */
	assert_int_equal(mount("tmpfs", "/run", "tmpfs", MS_REMOUNT, "size=64k"), 0);
	boot_cache_write("nvidia", "old");
	boot_cache_write("nvidia", large);
	assert_kept("nvidia", "old");
	assert_int_equal(stat(FOLDER, &st), 0);
	assert_int_equal(rmdir(FOLDER), -1);
	boot_cache_remove("nvidia");
	assert_int_equal(rmdir(FOLDER), 0);
	/* Something else is there. */
	assert_int_equal(mkdir(FOLDER, 0777), 0);
	assert_int_equal(chmod(FOLDER, 0777), 0);
	boot_cache_write("nvidia", "in a directory of everybody's");
	assert_int_equal(boot_cache_read("nvidia", 100, &large, NULL), -EPERM);
	assert_int_equal(rmdir(FOLDER), 0);
	put(FOLDER, "a file");
	boot_cache_write("nvidia", "x");
	boot_cache_remove("nvidia");
	assert_int_equal(mount("tmpfs", "/run", "tmpfs", MS_REMOUNT | MS_RDONLY, NULL), 0);
	boot_cache_write("nvidia", "x");
	boot_cache_remove("nvidia");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_is_kept_is_read, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_killed_processes_left_goes, set_up, tear_down),
		cmocka_unit_test_setup_teardown(processes_that_write_at_once, set_up, tear_down),
		cmocka_unit_test_setup_teardown(places_where_nothing_can_be_kept, set_up, tear_down),
	};
	int failed;

	scratch_enter();
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	scratch_remove();
	return failed;
}
