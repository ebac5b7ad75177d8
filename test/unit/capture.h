/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a function prints, and how a process ends in which a function ends it. */

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static char capture_text[64 * 1024];
static int capture_kept = -1, capture_file = -1, capture_fd = -1;

/* From here on @fd leads into a file. */
static inline void capture_begin(int fd)
{
	(void)fflush(NULL);
	capture_kept = dup(fd);
	capture_file = memfd_create("capture", MFD_CLOEXEC);
	(void)dup2(capture_file, fd);
	capture_fd = fd;
}

/* Return: what was written since, valid until the next capture. */
static inline const char *capture_end(void)
{
	ssize_t size;

	(void)fflush(NULL);
	size = pread(capture_file, capture_text, sizeof(capture_text) - 1, 0);
	capture_text[size > 0 ? size : 0] = '\0';
	(void)dup2(capture_kept, capture_fd);
	(void)close(capture_kept);
	(void)close(capture_file);
	return capture_text;
}

/* Runs @function in a child. Return: its exit status; capture_text: its standard error. */
static inline int capture_exit(void (*function)(void *user), void *user)
{
	int status = 0;
	pid_t pid;

	capture_begin(STDERR_FILENO);
	pid = fork();
	if (pid == 0) {
		function(user);
		(void)fflush(NULL);
		_exit(0);
	}
	(void)waitpid(pid, &status, 0);
	(void)capture_end();
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}
