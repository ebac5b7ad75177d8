/* SPDX-License-Identifier: Apache-2.0 */

#include "unit.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "hooks/internal.h"

enum { LIMIT = 1024 * 1024 };

/* Standard input is a file with @size bytes. */
static int read_of_size(size_t size, const char **ret_text, size_t *ret_size)
{
	char *bytes = malloc(size + 1);
	int fd = memfd_create("state", MFD_CLOEXEC), r;

	assert_non_null(bytes);
	memset(bytes, 's', size);
	assert_int_equal(write(fd, bytes, size), size);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	assert_int_equal(dup2(fd, STDIN_FILENO), STDIN_FILENO);
	r = state_read(ret_text, ret_size);
	if (r == 0)
		assert_memory_equal(*ret_text, bytes, size);
	close(fd);
	free(bytes);
	return r;
}

static void everything_up_to_the_end(void **state)
{
	const char *text = NULL;
	size_t size = 0;

	(void)state;
	assert_int_equal(read_of_size(LIMIT, &text, &size), 0);
	assert_int_equal(size, LIMIT);
	assert_int_equal(read_of_size(0, &text, &size), 0);
	assert_int_equal(size, 0);
}

static void more_than_a_state_can_be(void **state)
{
	const char *text = NULL;
	size_t size = 7;

	(void)state;
	assert_int_equal(read_of_size(LIMIT + 1, &text, &size), -EFBIG);
	assert_null(text);
	assert_int_equal(size, 7);
}

/* Engines write in several pieces. */
static void pieces_of_a_pipe(void **state)
{
	const char *text = NULL;
	size_t size = 0;
	int pair[2];
	pid_t pid;

	(void)state;
	assert_int_equal(pipe(pair), 0);
	pid = fork();
	if (pid == 0) {
		close(pair[0]);
		for (int i = 0; i < 3; i++) {
			(void)!write(pair[1], "abc", 3);
			usleep(20000);
		}
		_exit(0);
	}
	close(pair[1]);
	assert_int_equal(dup2(pair[0], STDIN_FILENO), STDIN_FILENO);
	close(pair[0]);
	assert_int_equal(state_read(&text, &size), 0);
	assert_int_equal(size, 9);
	assert_memory_equal(text, "abcabcabc", 9);
}

static void no_standard_input(void **state)
{
	const char *text = NULL;
	size_t size = 0;

	(void)state;
	close(STDIN_FILENO);
	assert_int_equal(state_read(&text, &size), -EBADF);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(everything_up_to_the_end),
		cmocka_unit_test(more_than_a_state_can_be),
		cmocka_unit_test(pieces_of_a_pipe),
		cmocka_unit_test(no_standard_input),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
