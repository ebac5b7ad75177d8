/* SPDX-License-Identifier: Apache-2.0 */

#include "base/lock_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"

enum { NAP_MS = 20, HOLDER_SIZE = 16 };

int lock_file_open_directory(const char *path)
{
	_cleanup_close_ int fd = -1;
	struct stat st;

	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (st.st_uid != geteuid())
		return -EPERM;
	if (st.st_mode & (S_IRWXG | S_IRWXO) && fchmod(fd, 0700) < 0)
		return -errno;
	return steal_fd(&fd);
}

/* Who had the lock may have removed the file. Return: 0 if it is there; -ENOENT; negative errno. */
static int lock_file_check_named(int fd)
{
	struct stat st;

	return fstat(fd, &st) < 0 ? -errno : st.st_nlink > 0 ? 0 : -ENOENT;
}

/* The pid that the lock's holder has written. Without a holder the number means nothing. */
static pid_t lock_file_read_holder(int fd)
{
	char text[HOLDER_SIZE] = "";

	return pread(fd, text, sizeof(text) - 1, 0) > 0 ? (pid_t)strtol(text, NULL, 10) : 0;
}

static void lock_file_write_holder(int fd)
{
	char text[HOLDER_SIZE];

	(void)!pwrite(fd, text, (size_t)snprintf(text, sizeof(text), "%10d\n", (int)getpid()), 0);
}

/* Return: 0 with a descriptor that has the lock; -EWOULDBLOCK with one that has not; negative errno. */
static int lock_file_try(int directory, const char *name, int *fd)
{
	int r;

	do {
		cleanup_closep(fd);
		*fd = openat(directory, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
		if (*fd < 0)
			return -errno;
		if (flock(*fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK)
			return -EWOULDBLOCK;
		r = lock_file_check_named(*fd);
	} while (r == -ENOENT);
	return r;
}

/* From the kernel's list of locks, "1: FLOCK  ADVISORY  WRITE 4711 fd:01:1234 0 EOF". Return: 0 if it is not there. */
static pid_t lock_file_find_holder(int fd)
{
	_cleanup_fclose_ FILE *locks = fopen("/proc/locks", "re");
	unsigned long inode;
	unsigned device_major, device_minor;
	char line[128];
	struct stat st;
	int pid;

	if (!locks || fstat(fd, &st) < 0)
		return 0;
	while (fgets(line, sizeof(line), locks))
		if (sscanf(line, "%*u: FLOCK %*s %*s %d %x:%x:%lu", &pid, &device_major, &device_minor, &inode) == 4 &&
		    inode == st.st_ino && makedev(device_major, device_minor) == st.st_dev)
			return pid;
	return 0;
}

int lock_file_take_directory(int directory, unsigned wait_ms, pid_t *ret_holder)
{
	const struct timespec nap = {.tv_nsec = NAP_MS * 1000000L};
	_cleanup_close_ int fd = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r;

	if (fd < 0)
		return -errno;
	for (unsigned waited = 0; flock(fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK; waited += NAP_MS) {
		if (waited >= wait_ms) {
			*ret_holder = lock_file_find_holder(fd);
			return -ETIMEDOUT;
		}
		if (nanosleep(&nap, NULL) < 0)
			return -EINTR;
	}
	r = lock_file_check_named(fd);
	return r < 0 ? r : steal_fd(&fd);
}

int lock_file_take(int directory, const char *name, unsigned wait_ms, pid_t *ret_holder)
{
	const struct timespec nap = {.tv_nsec = NAP_MS * 1000000L};
	_cleanup_close_ int fd = -1;

	for (unsigned waited = 0;; waited += NAP_MS) {
		int r = lock_file_try(directory, name, &fd);

		if (r == 0)
			break;
		if (r != -EWOULDBLOCK)
			return r;
		if (waited >= wait_ms) {
			*ret_holder = lock_file_read_holder(fd);
			return -ETIMEDOUT;
		}
		if (nanosleep(&nap, NULL) < 0)
			return -EINTR;
	}
	lock_file_write_holder(fd);
	return steal_fd(&fd);
}

void lock_file_release(int directory, const char *name, int fd)
{
	(void)unlinkat(directory, name, 0);
	(void)close(fd);
}
