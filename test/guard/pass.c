/* SPDX-License-Identifier: Apache-2.0 */

/*
 * pass CGROUP.PROCS LUID -- HIDDEN: a process outside of the cgroup opens the device and hands the file, with a hidden adapter's handle
 * in it, to one inside: by fork, by a socket, and by execve. The driver knows a file by the process that opened it.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "dxg.h"

static struct arguments arguments;

static void join(const char *procs)
{
	int fd = open(procs, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, "0", 1) != 1)
		exit(4);
	(void)close(fd);
}

/* Exit status of a child: the errno of its query of the hidden adapter, 0 if it was answered. */
static int ended(pid_t pid)
{
	int status;

	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		exit(5);
	return WIFSIGNALED(status) ? 1000 + WTERMSIG(status) : WEXITSTATUS(status);
}

static void by_fork(const char *procs, int fd, uint32_t handle)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		join(procs);
		_exit(-dxg_bus(fd, handle) & 0xff);
	}
	status = ended(pid);
	tap(status == ENOTTY || status == EINVAL, "a file inherited by fork: %d", status);
}

static void by_socket(const char *procs, int fd, uint32_t handle)
{
	int pair[2], status;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0)
		exit(4);
	pid = fork();
	if (pid == 0) {
		(void)close(fd);
		join(procs);
		_exit(-dxg_bus(dxg_receive(pair[1]), handle) & 0xff);
	}
	dxg_send(pair[0], fd);
	status = ended(pid);
	tap(status == ENOTTY || status == EINVAL, "a file received over a socket: %d", status);
}

/* The process keeps its number, and so its handles; but it is in the cgroup now. */
static void by_exec(const char *procs, char **argv)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		uint32_t handle;
		char numbers[32];
		int fd = open("/dev/dxg", O_RDONLY);

		if (fd < 0 || dxg_open_luid(fd, arguments.hidden[0], 0, &handle) < 0)
			_exit(100);
		(void)snprintf(numbers, sizeof(numbers), "%d:%x", fd, handle);
		join(procs);
		(void)execl(argv[0], argv[0], "--after-exec", numbers, (char *)NULL);
		_exit(101);
	}
	status = ended(pid);
	tap(status == EINVAL || status == EPERM || status == 1009, "a file kept over execve: %d", status);
}

int main(int argc, char **argv)
{
	uint32_t handle;
	int fd;

	if (argc == 3 && strcmp(argv[1], "--after-exec") == 0 && sscanf(argv[2], "%d:%x", &fd, &handle) == 2)
		return -dxg_bus(fd, handle) & 0xff;
	if (argc < 5)
		return 2;
	arguments_read(argc, argv, 2, &arguments);
	if (arguments.hidden_count != 1)
		return 2;
	fd = dxg_open();
	if (!tap(dxg_open_luid(fd, arguments.hidden[0], 0, &handle) == 0, "outside, the adapter can be opened"))
		return tap_status();
	by_fork(argv[1], fd, handle);
	by_socket(argv[1], fd, handle);
	by_exec(argv[1], argv);
	tap(dxg_bus(fd, handle) > 0, "outside, it still can be used");
	return tap_status();
}
