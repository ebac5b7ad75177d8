/* SPDX-License-Identifier: Apache-2.0 */

#include "system/program_output.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"

enum { TICK_MS = 10 };

static _Noreturn void program_output_run(const char *const arguments[], int output)
{
	char *const environment[] = {NULL};
	int null = open("/dev/null", O_RDWR);

	if (null >= 0 && dup2(null, STDIN_FILENO) >= 0 && dup2(output, STDOUT_FILENO) >= 0 &&
	    dup2(null, STDERR_FILENO) >= 0) {
		closefrom(STDERR_FILENO + 1);
		(void)execve(arguments[0], (char *const *)(const void *)arguments, environment);
	}
	_exit(EXIT_FAILURE);
}

/* @end: when its time is over. Return: whether the output came to its end before. */
static bool program_output_receive(int fd, size_t max, long end, char *text, size_t *size)
{
	long left;
	ssize_t part = -1;

	while (*size < max && (left = end - clock_now_ms()) > 0) {
		struct pollfd input = {.fd = fd, .events = POLLIN};

		if (poll(&input, 1, (int)left) <= 0)
			continue;
		part = read(fd, text + *size, max - *size);
		if (part <= 0)
			break;
		*size += (size_t)part;
	}
	text[*size] = '\0';
	return part == 0;
}

/* A program may close its output and go on. Return: its exit status; -1 if it did not end by itself before @end. */
static int program_output_wait(pid_t pid, long end)
{
	_cleanup_close_ int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	struct pollfd process = {.fd = pidfd, .events = POLLIN};
	int wait_status = -1;
	long left;

	while (waitpid(pid, &wait_status, WNOHANG) == 0) {
		left = end - clock_now_ms();
		if (left <= 0) {
			(void)kill(pid, SIGKILL);
			(void)waitpid(pid, NULL, 0);
			return -1;
		}
		(void)poll(&process, 1, pidfd < 0 && left > TICK_MS ? TICK_MS : (int)left);
	}
	return WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : -1;
}

int program_output_read_status(const char *const arguments[], int time_ms, size_t max, char **ret, size_t *ret_size)
{
	const long end = clock_now_ms() + time_ms;
	_cleanup_close_ int ours = -1;
	int pair[2];
	int exit_status;
	bool complete;
	pid_t pid;

	*ret_size = 0;
	*ret = malloc(max + 1);
	if (!*ret || pipe2(pair, O_CLOEXEC) < 0)
		return -1;
	(*ret)[0] = '\0';
	ours = pair[0];
	pid = fork();
	if (pid == 0)
		program_output_run(arguments, pair[1]);
	(void)close(pair[1]);
	if (pid < 0)
		return -1;
	complete = program_output_receive(ours, max, end, *ret, ret_size);
	exit_status = program_output_wait(pid, complete ? end : 0);
	return complete ? exit_status : -1;
}

bool program_output_read(const char *const arguments[], int time_ms, size_t max, char **ret, size_t *ret_size)
{
	return program_output_read_status(arguments, time_ms, max, ret, ret_size) == 0;
}
