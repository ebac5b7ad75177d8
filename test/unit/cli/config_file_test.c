/* SPDX-License-Identifier: Apache-2.0 */

/* Configuration files that several processes write. */

#include "unit.h"

#include <sys/file.h>
#include <sys/wait.h>

#include "cli/config_file.h"
#include "cli/output.h"
#include "scratch.h"

#define FOLDER "/run/etc"
#define FILE_NAME FOLDER "/config.json"
#define TEMPORARY FOLDER "/.config.json.ctr-gpu"
#define OLD "{\"old\": 1}\n"
#define NEW "{\"new\": 1}\n"
#define OTHER "{\"other\": 1}\n"

enum { WRITERS = 4, ROUNDS = 50, SIZE = 64 * 1024 };

static int set_up(void **state)
{
	(void)state;
	return mount("tmpfs", "/run", "tmpfs", 0, "mode=755") < 0 ? -1 : mkdir(FOLDER, 0755);
}

static int tear_down(void **state)
{
	(void)state;
	return umount2("/run", MNT_DETACH);
}

static int put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	return fd;
}

static void assert_text(const char *expected)
{
	_cleanup_config_file_ struct config_file file = {0};

	assert_int_equal(config_file_read(FILE_NAME, &file), 0);
	assert_int_equal(file.text.size, strlen(expected));
	assert_memory_equal(file.text.data, expected, file.text.size);
	assert_int_equal(access(TEMPORARY, F_OK), -1);
}

static void silence(void)
{
	int nothing = open("/dev/null", O_WRONLY | O_CLOEXEC);

	(void)dup2(nothing, STDERR_FILENO);
}

/* Return: a process that writes what @file was read for, and exits with what config_file_write() returns. */
static pid_t begin_to_write(struct config_file *file, const char *text)
{
	pid_t pid = fork();

	if (pid == 0) {
		silence();
		_exit(config_file_write(file, &(struct text_buffer){(char *)text, strlen(text)}, 0644));
	}
	return pid;
}

static void what_another_process_writes_is_left_to_it(void **state)
{
	_cleanup_config_file_ struct config_file file = {0};
	int others, status;
	pid_t pid;

	(void)state;
	close(put(FILE_NAME, OLD));
	assert_int_equal(config_file_read(FILE_NAME, &file), 0);
	others = put(TEMPORARY, "{");
	assert_int_equal(flock(others, LOCK_EX), 0);
	pid = begin_to_write(&file, NEW);
	usleep(200 * 1000);
	assert_int_equal(access(TEMPORARY, F_OK), 0);
	assert_int_equal(waitpid(pid, &status, WNOHANG), 0);
	assert_int_equal(pwrite(others, OTHER, strlen(OTHER), 0), strlen(OTHER));
	assert_int_equal(rename(TEMPORARY, FILE_NAME), 0);
	close(others);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == EXIT_STATUS_FAILURE);
	assert_text(OTHER);
}

static void what_a_killed_process_has_left_is_in_nobodys_way(void **state)
{
	_cleanup_config_file_ struct config_file file = {0};

	(void)state;
	close(put(FILE_NAME, OLD));
	close(put(TEMPORARY, "{"));
	assert_int_equal(config_file_read(FILE_NAME, &file), 0);
	assert_int_equal(config_file_write(&file, &(struct text_buffer){(char *)NEW, strlen(NEW)}, 0644), 0);
	assert_text(NEW);
	/* A link leads nowhere. */
	assert_int_equal(symlink(FOLDER "/elsewhere", TEMPORARY), 0);
	assert_int_equal(config_file_write(&file, &(struct text_buffer){(char *)OLD, strlen(OLD)}, 0644), 0);
	assert_text(OLD);
	assert_int_equal(access(FOLDER "/elsewhere", F_OK), -1);
}

/* Writes a file of one letter, until that has been done often enough. Return: 0, or 1 if part of a file was seen. */
static int write_often(char letter)
{
	static char text[SIZE];
	int written = 0;

	memset(text, letter, sizeof(text));
	while (written < ROUNDS) {
		_cleanup_config_file_ struct config_file file = {0};

		if (config_file_read(FILE_NAME, &file) != 0)
			return 1;
		for (size_t i = 0; i < file.text.size; i++)
			if (file.text.size != SIZE || file.text.data[i] != file.text.data[0])
				return 1;
		written += config_file_write(&file, &(struct text_buffer){text, SIZE}, 0644) == 0;
	}
	return 0;
}

static void each_of_many_writes_all_or_nothing(void **state)
{
	pid_t pids[WRITERS];

	(void)state;
	for (int i = 0; i < WRITERS; i++) {
		pids[i] = fork();
		if (pids[i] == 0) {
			silence();
			_exit(write_often((char)('a' + i)));
		}
	}
	for (int i = 0; i < WRITERS; i++) {
		int status;

		assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
		assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	}
	assert_int_equal(access(TEMPORARY, F_OK), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_another_process_writes_is_left_to_it, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_a_killed_process_has_left_is_in_nobodys_way, set_up, tear_down),
		cmocka_unit_test_setup_teardown(each_of_many_writes_all_or_nothing, set_up, tear_down),
	};
	int failed;

	scratch_enter();
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	scratch_remove();
	return failed;
}
