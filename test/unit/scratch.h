/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A place where a test may mount, break and remove what it likes: a tmpfs in a mount namespace of its own, gone when the
 * program ends. And a picture of it (names, types, modes, owners, contents, mounts), to tell whether anything changed.
 */

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "unit.h"

#include "base/fd.h"
#include "base/str.h"
#include "process/seccomp.h"

static char scratch[] = "/tmp/ctr-gpu-test-XXXXXX";

static inline char *scratch_path(const char *path)
{
	static char buffers[8][512];
	static unsigned next;
	char *buffer = buffers[next++ % 8];

	(void)snprintf(buffer, sizeof(buffers[0]), "%s%s", scratch, path);
	return buffer;
}

static inline void scratch_fail(void)
{
	perror("scratch");
	exit(1);
}

/* For the whole program: of what sets one test up, cmocka takes a skip for a failure. */
static inline _Noreturn void scratch_skip_all(const char *why)
{
	(void)printf("ok 1 - %s # SKIP\n1..1\n", why);
	exit(0);
}

/* Once per program, before all else. */
static inline void scratch_enter(void)
{
	if (geteuid() != 0)
		scratch_skip_all("needs root");
	if (unshare(CLONE_NEWNS) < 0)
		scratch_fail();
	if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0) {
		if (errno != EINVAL)
			scratch_fail();
		scratch_skip_all("wants / to be a mount point, which it is not in a plain chroot");
	}
	if (!mkdtemp(scratch))
		scratch_fail();
}

static inline void scratch_remove(void)
{
	(void)umount2(scratch, MNT_DETACH);
	(void)rmdir(scratch);
}

/* How many rounds a race takes: CTR_GPU_TEST_ROUNDS, large where time matters less than what is found. */
static inline int scratch_rounds(void)
{
	const char *rounds = getenv("CTR_GPU_TEST_ROUNDS");

	return rounds ? atoi(rounds) : 1000;
}

/* An empty tmpfs for each test. */
static inline int scratch_mount(void **state)
{
	(void)state;
	return mount("tmpfs", scratch, "tmpfs", 0, NULL);
}

static inline int scratch_unmount(void **state)
{
	(void)state;
	return umount2(scratch, MNT_DETACH);
}

static inline void make_directories(const char *path)
{
	char *full = scratch_path(path);

	for (char *slash = full + strlen(scratch) + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		if (mkdir(full, 0755) < 0)
			assert_int_equal(errno, EEXIST);
		*slash = '/';
	}
	if (mkdir(full, 0755) < 0)
		assert_int_equal(errno, EEXIST);
}

static inline void write_file(const char *path, const char *text)
{
	int fd = open(scratch_path(path), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, text, strlen(text)), 0);
	close(fd);
}

static inline void make_link(const char *path, const char *points_to)
{
	assert_int_equal(symlink(points_to, scratch_path(path)), 0);
}

static inline void assert_content(const char *path, const char *expected)
{
	char *text = NULL;

	assert_int_equal(fd_read_file_at(AT_FDCWD, scratch_path(path), 1 << 20, &text, NULL), 0);
	assert_string_equal(text, expected);
	free(text);
}

static inline bool exists(const char *path)
{
	struct stat st;

	return lstat(scratch_path(path), &st) == 0;
}

/* ---- the picture ---- */

static struct strv scratch_lines;

static inline int scratch_line(const char *path, const struct stat *st, int type, struct FTW *where)
{
	char *line = NULL, *text = NULL;
	char link[512] = "";

	(void)where;
	if (type == FTW_SL)
		(void)!readlink(path, link, sizeof(link) - 1);
	if (S_ISREG(st->st_mode))
		(void)fd_read_file_at(AT_FDCWD, path, 1 << 20, &text, NULL);
	if (str_format(&line, "%s %o %u:%u %s%s", path, st->st_mode, st->st_uid, st->st_gid, link, text ? text : "") <
	    0)
		return -1;
	free(text);
	return strv_take(&scratch_lines, line);
}

/* mountinfo numbers mounts anew; what tells them apart is the rest. */
static inline void scratch_mounts(void)
{
	char *text = NULL;

	assert_int_equal(fd_read_file_at(AT_FDCWD, "/proc/self/mountinfo", 4 << 20, &text, NULL), 0);
	for (char *rest = text, *line; (line = strsep(&rest, "\n"));) {
		char *stable = strchr(line, ':');

		if (stable && strstr(line, scratch))
			assert_int_equal(strv_add(&scratch_lines, stable), 0);
	}
	free(text);
}

/* Return: everything below @path that is not on another mount, and all mounts of the scratch place, sorted, for free(). */
static inline char *picture(const char *path)
{
	char *all = strdup("");

	assert_int_equal(nftw(scratch_path(path), scratch_line, 16, FTW_PHYS | FTW_MOUNT), 0);
	scratch_mounts();
	strv_sort(&scratch_lines);
	for (size_t i = 0; i < scratch_lines.count; i++) {
		char *longer = NULL;

		assert_int_equal(str_format(&longer, "%s%s\n", all, scratch_lines.items[i]), 0);
		free(all);
		all = longer;
	}
	strv_clear(&scratch_lines);
	return all;
}

/* ---- old kernels, and filters ---- */

/* From now on these system calls fail so for this process. */
static inline void refuse_calls(const int *calls, size_t count, int error)
{
	struct sock_filter filter[SECCOMP_MAX] = {LOAD(nr)};
	size_t size = 1;

	for (size_t i = 0; i < count; i++) {
		filter[size++] = (struct sock_filter)JUMP(BPF_JEQ, calls[i], 0, 1);
		filter[size++] = (struct sock_filter)REFUSE((unsigned)error);
	}
	filter[size++] = (struct sock_filter)ALLOW;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || seccomp_install(filter, size) < 0)
		abort();
}

/* From now on these system calls do not exist for this process. */
static inline void forget_calls(const int *calls, size_t count)
{
	refuse_calls(calls, count, ENOSYS);
}
