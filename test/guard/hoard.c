/* SPDX-License-Identifier: Apache-2.0 */

/*
 * hoard COUNT LUID: so many processes, each of which opened /dev/dxg, made a call and ended, while its file stays open in this one: the
 * driver keeps what it knows of them. "ready" is printed when all are there; it ends with its standard input.
 */

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "dxg.h"

static struct arguments arguments;
static char stack[64 * 1024] __attribute__((aligned(16)));

/* A process of its own with the parent's descriptors. */
static int open_one(void *unused)
{
	uint32_t handle;
	int fd = dxg_open();

	(void)unused;
	_exit(dxg_open_luid(fd, arguments.seen[0], 0, &handle) == 0 ? 0 : 3);
}

static bool hoard(void)
{
	pid_t pid = clone(open_one, stack + sizeof(stack), CLONE_FILES | CLONE_VM | CLONE_VFORK | SIGCHLD, NULL);
	int status;

	return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

int main(int argc, char **argv)
{
	struct rlimit files;
	long count = argc > 2 ? strtol(argv[1], NULL, 10) : 0;
	char byte;

	arguments_read(argc, argv, 2, &arguments);
	files.rlim_cur = files.rlim_max = (rlim_t)count + 64;
	if (count < 1 || arguments.seen_count != 1 || setrlimit(RLIMIT_NOFILE, &files) < 0)
		return 2;
	for (long i = 0; i < count; i++)
		if (!hoard()) {
			(void)printf("not ok - only %ld of %ld\n", i, count);
			return 1;
		}
	(void)puts("ready");
	(void)fflush(stdout);
	(void)!read(STDIN_FILENO, &byte, 1);
	return 0;
}
