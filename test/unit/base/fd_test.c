/* SPDX-License-Identifier: Apache-2.0 */

/* Parts of a file, written one behind the other whatever the kernel takes of them at once. */

#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "process/seccomp.h"

enum { SIZE = 300 * 1000 };

static unsigned char content[SIZE], got[SIZE + 1];
static size_t got_size;
static int ends[2];

/* Empty parts, parts of one byte and large ones, more of them than one call takes. */
static size_t cut(struct span *parts, size_t count)
{
	size_t at = 0;

	for (size_t i = 0; i < count; i++) {
		size_t size = i + 1 == count ? SIZE - at : i % 3 == 0 ? 0 : i % 3 == 1 ? 1 : SIZE / count;

		parts[i] = (struct span){content + at, size};
		at += size;
	}
	return at;
}

static void drain(int signal)
{
	ssize_t size = read(ends[0], got + got_size, sizeof(got) - got_size);

	(void)signal;
	if (size > 0)
		got_size += (size_t)size;
}

static void test_file(void **state)
{
	(void)state;
	for (size_t count = 1; count < 30; count++) {
		char path[] = "/tmp/ctr-gpu-fd.XXXXXX";
		_cleanup_close_ int fd = mkstemp(path);
		struct span parts[30];

		assert_int_equal(unlink(path), 0);
		assert_int_equal(cut(parts, count), SIZE);
		assert_int_equal(fd_write_parts(fd, parts, count), 0);
		assert_int_equal(pread(fd, got, sizeof(got), 0), SIZE);
		assert_memory_equal(got, content, SIZE);
	}
}

/* A pipe that takes more only when a signal came: every write ends before its end, inside a part. */
static void test_interrupted(void **state)
{
	struct sigaction action = {.sa_handler = drain};
	struct itimerval often = {{0, 2000}, {0, 2000}}, never = {0};
	struct span parts[7];

	(void)state;
	got_size = 0;
	assert_int_equal(cut(parts, ARRAY_SIZE(parts)), SIZE);
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	assert_int_equal(fcntl(ends[0], F_SETFL, O_NONBLOCK), 0); /* a signal may come while it is empty */
	assert_int_equal(sigaction(SIGALRM, &action, NULL), 0);
	assert_int_equal(setitimer(ITIMER_REAL, &often, NULL), 0);
	assert_int_equal(fd_write_parts(ends[1], parts, ARRAY_SIZE(parts)), 0);
	assert_int_equal(setitimer(ITIMER_REAL, &never, NULL), 0);
	close(ends[1]);
	while (got_size < SIZE && got_size + 1 < sizeof(got)) {
		size_t before = got_size;

		drain(0);
		if (got_size == before)
			break;
	}
	close(ends[0]);
	assert_int_equal(got_size, SIZE);
	assert_memory_equal(got, content, SIZE);
}

static void test_error(void **state)
{
	_cleanup_close_ int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
	struct span parts[3];

	(void)state;
	assert_int_equal(cut(parts, ARRAY_SIZE(parts)), SIZE);
	assert_int_equal(fd_write_parts(fd, parts, ARRAY_SIZE(parts)), -ENOSPC);
	assert_int_equal(fd_write_parts(-1, parts, ARRAY_SIZE(parts)), -EBADF);
	assert_int_equal(fd_write_parts(-1, parts, 0), 0);
}

/* Who opens a device may have done something with it already. */
static void test_nothing_but_a_file_is_opened(void **state)
{
	char directory[] = "/tmp/ctr-gpu-fd.XXXXXX", path[64], event[512], *data;
	_cleanup_close_ int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC), fd = -1;

	(void)state;
	assert_non_null(mkdtemp(directory));
	(void)snprintf(path, sizeof(path), "%s/fifo", directory);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_true(inotify_add_watch(watch, path, IN_OPEN) >= 0);
	assert_int_equal(fd_read_file_at(AT_FDCWD, path, 100, &data, NULL), -EINVAL);
	assert_int_equal(fd_read_untrusted_at(AT_FDCWD, path, 100, &data, NULL), -EINVAL);
	assert_int_equal(fd_open_file_at(AT_FDCWD, path, 0), -EINVAL);
	assert_true(read(watch, event, sizeof(event)) < 0);
	fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	assert_true(read(watch, event, sizeof(event)) > 0);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(directory), 0);
}

/* A user's file system answers ENOENT, and has a device at the path the next time. */
static void test_nothing_is_opened_by_its_path_again(void **state)
{
	const uint32_t again = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
	const struct sock_filter filter[] = {LOAD(nr),         JUMP(BPF_JEQ, SYS_openat, 0, 3),
					     LOAD_ARGUMENT(2), JUMP(BPF_JEQ, again, 0, 1),
					     REFUSE(ENOENT),   ALLOW};
	int wait_status;
	pid_t pid = fork();

	(void)state;
	assert_true(pid >= 0);
	if (pid == 0) {
		if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || seccomp_install(filter, ARRAY_SIZE(filter)) < 0)
			_exit(255);
		/* Not followed, the path would be opened with other flags than the descriptor. */
		_exit(fd_open_file_at(AT_FDCWD, "/etc/passwd", O_NOFOLLOW) == -ENOENT ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &wait_status, 0), pid);
	assert_true(WIFEXITED(wait_status));
	assert_int_equal(WEXITSTATUS(wait_status), 0);
}

static bool any(const char *name)
{
	return name[0] != '.';
}

/* In a child, whose reads of directories fail. Return: what fd_list_names() returns there. */
static int list_with_error(const char *directory, int error)
{
	const struct sock_filter filter[] = {LOAD(nr), JUMP(BPF_JEQ, SYS_getdents64, 0, 1),
					     REFUSE((unsigned)error & SECCOMP_RET_DATA), ALLOW};
	int wait_status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		struct strv names = {0};

		if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || seccomp_install(filter, ARRAY_SIZE(filter)) < 0)
			_exit(255);
		_exit(-fd_list_names(AT_FDCWD, directory, any, 10, &names));
	}
	assert_int_equal(waitpid(pid, &wait_status, 0), pid);
	assert_true(WIFEXITED(wait_status) && WEXITSTATUS(wait_status) != 255);
	return -WEXITSTATUS(wait_status);
}

/* What is left out of a list of GPUs or libraries would be missing in the container, or not be hidden. */
static void test_part_of_a_list_is_none(void **state)
{
	char directory[] = "/tmp/ctr-gpu-fd.XXXXXX", path[64];
	struct strv names = {0};

	(void)state;
	assert_non_null(mkdtemp(directory));
	for (int i = 0; i < 3; i++) {
		(void)snprintf(path, sizeof(path), "%s/%d", directory, i);
		assert_int_equal(mkdir(path, 0700), 0);
	}
	assert_int_equal(fd_list_names(AT_FDCWD, directory, any, 3, &names), 0);
	assert_int_equal(names.count, 3);
	strv_clear(&names);
	assert_int_equal(fd_list_names(AT_FDCWD, directory, any, 2, &names), 0);
	assert_int_equal(names.count, 2);
	strv_clear(&names);
	assert_int_equal(list_with_error(directory, EIO), -EIO);
	/* Somebody has removed it. */
	assert_int_equal(list_with_error(directory, ENOENT), -ENOENT);
	for (int i = 0; i < 3; i++) {
		(void)snprintf(path, sizeof(path), "%s/%d", directory, i);
		assert_int_equal(rmdir(path), 0);
	}
	assert_int_equal(rmdir(directory), 0);
}

/* Its name is a FIFO's in between, which would make us wait for a writer; a device may do something. */
static void test_nothing_that_comes_into_its_place_is_opened(void **state)
{
	char directory[] = "/tmp/ctr-gpu-fd.XXXXXX", file[64], fifo[64], event[512], *data;
	_cleanup_close_ int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC), fd = -1;
	unsigned files = 0, others = 0;
	pid_t swapper;

	(void)state;
	assert_non_null(mkdtemp(directory));
	(void)snprintf(file, sizeof(file), "%s/file", directory);
	(void)snprintf(fifo, sizeof(fifo), "%s/fifo", directory);
	fd = open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(fd_write_all(fd, "text", 4), 0);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	assert_true(inotify_add_watch(watch, fifo, IN_OPEN) >= 0);
	swapper = fork();
	if (swapper == 0)
		for (;;)
			(void)renameat2(AT_FDCWD, file, AT_FDCWD, fifo, RENAME_EXCHANGE);
	while (files + others < 50000 || files == 0 || others == 0) {
		int r = fd_read_untrusted_at(AT_FDCWD, file, 100, &data, NULL);

		assert_true(r == 0 || r == -EINVAL);
		files += r == 0;
		others += r != 0;
		if (r == 0)
			free(data);
	}
	assert_int_equal(kill(swapper, SIGKILL), 0);
	assert_int_equal(waitpid(swapper, NULL, 0), swapper);
	assert_true(read(watch, event, sizeof(event)) < 0);
	assert_int_equal(unlink(file), 0);
	assert_int_equal(unlink(fifo), 0);
	assert_int_equal(rmdir(directory), 0);
}

static void expect_log(const char *path, int wanted)
{
	int fd = fd_open_log(path);

	if (wanted < 0) {
		assert_int_equal(fd, wanted);
		return;
	}
	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, "text", 4), 0);
	assert_int_equal(close(fd), 0);
}

/* What another user has put there is no log, unless it is a file. */
static void test_log(void **state)
{
	char directory[] = "/tmp/ctr-gpu-fd.XXXXXX", path[64], target[64];
	struct stat st;

	(void)state;
	assert_non_null(mkdtemp(directory));
	(void)snprintf(path, sizeof(path), "%s/log", directory);
	(void)snprintf(target, sizeof(target), "%s/target", directory);
	expect_log(path, 0);
	expect_log(path, 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_size, 8);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(symlink(target, path), 0);
	expect_log(path, 0);
	assert_int_equal(unlink(target), 0);
	if (geteuid() == 0) {
		assert_int_equal(lchown(path, 12345, 0), 0);
		expect_log(path, -EPERM);
		assert_int_equal(access(target, F_OK), -1);
	}
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkfifo(path, 0600), 0);
	expect_log(path, -ENXIO);
	if (geteuid() == 0) {
		assert_int_equal(chown(path, 12345, 0), 0);
		expect_log(path, -EPERM);
	}
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(directory), 0);
	expect_log(path, -ENOENT);
	expect_log("/dev/null", 0);
}

static int new_file(void)
{
	char path[] = "/tmp/ctr-gpu-fd.XXXXXX";
	int fd = mkstemp(path);

	assert_true(fd >= 0 && unlink(path) == 0);
	return fd;
}

/* What is not refused before it is replaced can be brought back. */
static void what_can_be_copied_is_known_before(void **state)
{
	enum { PAGE = 4096 };
	static const char page[PAGE] = {1};
	static const off_t places[] = {0, 5 * PAGE, 6 * PAGE, 1 << 20};
	_cleanup_close_ int from = new_file();

	(void)state;
	assert_int_equal(ftruncate(from, 1 << 24), 0);
	for (size_t i = 0; i < ARRAY_SIZE(places); i++)
		assert_int_equal(pwrite(from, page, sizeof(page), places[i]), sizeof(page));
	for (off_t max = 0; max < 7 * PAGE; max += PAGE / 2) {
		_cleanup_close_ int to = new_file();
		int r = fd_copy(from, to, max);

		assert_true(r == 0 || r == -EFBIG);
		assert_int_equal(fd_is_beyond_copy(from, max), r == -EFBIG || max < 4 * PAGE);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_file),
		cmocka_unit_test(test_interrupted),
		cmocka_unit_test(test_error),
		cmocka_unit_test(test_nothing_but_a_file_is_opened),
		cmocka_unit_test(test_nothing_is_opened_by_its_path_again),
		cmocka_unit_test(test_part_of_a_list_is_none),
		cmocka_unit_test(test_nothing_that_comes_into_its_place_is_opened),
		cmocka_unit_test(test_log),
		cmocka_unit_test(what_can_be_copied_is_known_before),
	};

	for (size_t i = 0; i < SIZE; i++)
		content[i] = (unsigned char)(i * 7 + i / 251);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
