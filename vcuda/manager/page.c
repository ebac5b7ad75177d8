/* SPDX-License-Identifier: Apache-2.0 */

#include "vcuda/manager/page.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

/* Sealed, nothing can be cut off from below a mapping. */
#define PAGE_SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)
#define PAGE_NAME "ctr-gpu-vcuda-quota"

int page_make(size_t bytes, mode_t mode)
{
	_cleanup_close_ int fd = memfd_create(PAGE_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0 || ftruncate(fd, (off_t)bytes) < 0 || fchmod(fd, mode) < 0 || fcntl(fd, F_ADD_SEALS, PAGE_SEALS) < 0)
		return -errno;
	return steal_fd(&fd);
}

int page_open_again(int fd, int flags)
{
	char path[48];
	int again;

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	again = open(path, flags | O_CLOEXEC);
	return again < 0 ? -errno : again;
}

/* All that memfd_create(2) makes is on one device, where no other file is. */
static bool page_is_memory(const struct stat *st)
{
	_cleanup_close_ int own = memfd_create(PAGE_NAME, MFD_CLOEXEC);
	struct stat ours;

	return own >= 0 && fstat(own, &ours) == 0 && S_ISREG(st->st_mode) && st->st_dev == ours.st_dev;
}

static bool page_is_whole(int fd, size_t bytes)
{
	const int seals = fcntl(fd, F_GET_SEALS);
	struct stat st;

	return seals >= 0 && (seals & PAGE_SEALS) == PAGE_SEALS && fstat(fd, &st) == 0 && st.st_size == (off_t)bytes;
}

/*
 * What a server has there may be anything, a file or a device that it could not open itself. So it is not opened, to
 * which drivers and file systems do something, before it is known to be memory.
 */
int page_take(pid_t server, int number, size_t bytes, mode_t mode)
{
	_cleanup_close_ int held = -1, fd = -1;
	struct stat st;
	char path[48];

	(void)snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)server, number);
	held = open(path, O_PATH | O_CLOEXEC);
	if (held < 0 || fstat(held, &st) < 0)
		return -errno;
	if (!page_is_memory(&st) || st.st_uid != geteuid() || (st.st_mode & 07777) != mode)
		return -EBADF;
	fd = page_open_again(held, O_RDWR);
	if (fd < 0)
		return fd;
	return page_is_whole(fd, bytes) ? steal_fd(&fd) : -EBADF;
}

int page_map(int fd, size_t bytes, void **ret)
{
	void *memory = page_is_whole(fd, bytes) ? mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : NULL;

	if (!memory)
		return -EBADF;
	if (memory == MAP_FAILED)
		return -errno;
	*ret = memory;
	return 0;
}
