/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The memory of a process that waits in a trapped system call. Held open, so that a process id which is used again can
 * never lead to the memory of another process; after an execve() it is found again.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct memory {
	pid_t pid;
	int fd; /* of /proc/PID/mem */
};

/** Return: 0 or negative errno. */
int memory_open(pid_t pid, struct memory *ret);

void memory_close(struct memory *memory);

/** Both return whether all of it could be copied. */
bool memory_read(struct memory *memory, uint64_t address, void *ret, size_t size);
bool memory_write(struct memory *memory, uint64_t address, const void *data, size_t size);
