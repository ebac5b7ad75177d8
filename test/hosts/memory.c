/* SPDX-License-Identifier: Apache-2.0 */

#include "memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/uio.h>
#include <unistd.h>

int memory_open(pid_t pid, struct memory *ret)
{
	char path[32];
	int fd;

	(void)snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	*ret = (struct memory){.pid = pid, .fd = fd};
	return 0;
}

void memory_close(struct memory *memory)
{
	if (memory->fd >= 0)
		(void)close(memory->fd);
	memory->fd = -1;
}

/* The memory of before an execve() has no users left: it reads as an empty file. */
static bool reopen(struct memory *memory)
{
	struct memory now;

	if (memory_open(memory->pid, &now) < 0)
		return false;
	memory_close(memory);
	*memory = now;
	return true;
}

bool memory_read(struct memory *memory, uint64_t address, void *ret, size_t size)
{
	ssize_t got = pread(memory->fd, ret, size, (off_t)address);

	if (got == 0 && reopen(memory))
		got = pread(memory->fd, ret, size, (off_t)address);
	return got == (ssize_t)size;
}

/* Not through /proc/PID/mem, which writes to pages that the process itself may only read. */
bool memory_write(struct memory *memory, uint64_t address, const void *data, size_t size)
{
	const struct iovec from = {(void *)data, size}, to = {(void *)address, size};

	return process_vm_writev(memory->pid, &from, 1, &to, 1, 0) == (ssize_t)size;
}
