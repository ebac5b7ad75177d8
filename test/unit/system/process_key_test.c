/* SPDX-License-Identifier: Apache-2.0 */

/* A process is known by its number and its start. */

#include "unit.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "system/machine.h"

static void make_key(pid_t pid, char ret[PROCESS_KEY_SIZE])
{
	char path[32];
	int fd;

	(void)snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(process_key_make(pid, fd, ret), 0);
	assert_int_equal(close(fd), 0);
}

static void test_a_key_has_the_form_of_one(void **state)
{
	static const char *const none[] = {"",
					   "-",
					   "1",
					   "1-",
					   "-1",
					   "1-2-3",
					   "1-2 ",
					   " 1-2",
					   "1-a",
					   "../1-2",
					   "12345678901234567890-123456789012345678901234567890"};
	char key[PROCESS_KEY_SIZE];

	(void)state;
	make_key(getpid(), key);
	assert_true(process_key_is_valid(key));
	assert_int_equal(process_key_pid(key), getpid());
	for (size_t i = 0; i < ARRAY_SIZE(none); i++)
		assert_false(process_key_is_valid(none[i]));
}

/* A name with brackets and blanks moves no field. */
static void test_a_process_is_not_over_while_it_lives(void **state)
{
	char before[PROCESS_KEY_SIZE], after[PROCESS_KEY_SIZE];

	(void)state;
	make_key(getpid(), before);
	assert_int_equal(prctl(PR_SET_NAME, ") Z 1 2 (3"), 0);
	make_key(getpid(), after);
	assert_string_equal(before, after);
	assert_false(process_key_is_over(before));
}

static void test_another_start_or_no_process_is_over(void **state)
{
	char key[PROCESS_KEY_SIZE];

	(void)state;
	make_key(getpid(), key);
	key[strlen(key) - 1] = key[strlen(key) - 1] == '0' ? '1' : '0';
	assert_true(process_key_is_over(key));
	assert_true(process_key_is_over("4194305-1"));
}

static void test_a_zombie_is_over(void **state)
{
	char key[PROCESS_KEY_SIZE];
	siginfo_t info;
	pid_t pid = fork();

	(void)state;
	if (pid == 0)
		for (;;)
			(void)pause();
	make_key(pid, key);
	assert_false(process_key_is_over(key));
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	assert_true(process_key_is_over(key));
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_true(process_key_is_over(key));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_key_has_the_form_of_one),
		cmocka_unit_test(test_a_process_is_not_over_while_it_lives),
		cmocka_unit_test(test_another_start_or_no_process_is_over),
		cmocka_unit_test(test_a_zombie_is_over),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
