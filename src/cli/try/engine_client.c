/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/try/try.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"

enum {
	EXIT_NOT_FOUND = 127,
	GRACE_S = 3, /* between SIGTERM and SIGKILL */
	TICK_MS = 100,
};

static volatile sig_atomic_t over;

static void client_give_up(int signal_number)
{
	(void)signal_number;
	over = 1;
}

void client_guard(void)
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
	const struct sigaction action = {.sa_handler = client_give_up};

	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		(void)sigaction(signals[i], &action, NULL);
}

bool client_is_over(void)
{
	bool was = over;

	over = 0;
	return was;
}

static _Noreturn void client_become(const char *const *arguments, int input, int output)
{
	/* Handlers are not inherited, what is ignored is. */
	(void)signal(SIGPIPE, SIG_DFL);
	(void)setpgid(0, 0);
	(void)prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (input < 0)
		input = open("/dev/null", O_RDONLY);
	if (input >= 0 && lseek(input, 0, SEEK_SET) == 0 && dup2(input, STDIN_FILENO) >= 0 &&
	    dup2(output, STDOUT_FILENO) >= 0 && dup2(output, STDERR_FILENO) >= 0) {
		/* The client does not inherit descriptors that our caller left open. */
		closefrom(STDERR_FILENO + 1);
		(void)execvp(arguments[0], (char *const *)(const void *)arguments);
	}
	_exit(EXIT_NOT_FOUND);
}

/* Reads what there is; what does not fit is thrown away. Return: false at the end. */
static bool client_take_output(int fd, struct client_result *ret, size_t *size)
{
	struct pollfd wait = {.fd = fd, .events = POLLIN};
	char rest[4096];
	size_t room = sizeof(ret->output) - 1 - *size;
	ssize_t got;

	if (poll(&wait, 1, TICK_MS) <= 0)
		return true;
	got = read(fd, room ? ret->output + *size : rest, room ? room : sizeof(rest));
	if (got > 0 && room)
		*size += (size_t)got;
	return got > 0 || (got < 0 && errno == EINTR);
}

/* The state of a client that runs. */
struct client_watch {
	pid_t pid;
	int output;   /* -1: its streams are closed */
	time_t end_s; /* on the monotonic clock, when it gets SIGTERM, and then when it gets SIGKILL; 0: not set */
	bool killed, ended;
	int wait_status;
};

static void client_look_for_end(struct client_watch *watch)
{
	if (!watch->ended && waitpid(watch->pid, &watch->wait_status, WNOHANG) == watch->pid)
		watch->ended = true;
}

/* After the timeout or a signal, ends the client by SIGTERM, then by SIGKILL. Return: false: it is left behind. */
static bool client_hurry(struct client_watch *watch, int timeout_s, struct client_result *ret)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	if (watch->end_s == 0)
		watch->end_s = now.tv_sec + timeout_s;
	if (ret->status == 0 && (over || now.tv_sec >= watch->end_s)) {
		ret->status = over ? -EINTR : -ETIMEDOUT;
		watch->end_s = now.tv_sec + GRACE_S;
		(void)kill(-watch->pid, SIGTERM);
	} else if (ret->status < 0 && now.tv_sec >= watch->end_s) {
		if (watch->killed || watch->ended)
			return false;
		watch->killed = true;
		watch->end_s = now.tv_sec + GRACE_S;
		(void)kill(-watch->pid, SIGKILL);
	}
	return true;
}

/*
 * Waits until the client has ended and its streams are closed. Both are needed: a process that it left behind may hold
 * the streams open, and the client may close them and run on.
 */
static void client_attend(pid_t pid, int fd, int timeout_s, struct client_result *ret)
{
	struct client_watch watch = {.pid = pid, .output = fd};
	size_t size = 0;

	while (watch.output >= 0 || !watch.ended) {
		if (watch.output < 0)
			(void)poll(NULL, 0, watch.ended ? 0 : TICK_MS / 10);
		else if (!client_take_output(watch.output, ret, &size))
			watch.output = -1;
		client_look_for_end(&watch);
		if (watch.output < 0 && watch.ended)
			break;
		if (!client_hurry(&watch, timeout_s, ret) || (watch.killed && watch.ended))
			break;
	}
	ret->output[size] = '\0';
	if (ret->status == 0)
		ret->status = WIFEXITED(watch.wait_status) ? WEXITSTATUS(watch.wait_status)
							   : 128 + WTERMSIG(watch.wait_status);
}

void client_run(const char *const *arguments, int input, int timeout_s, struct client_result *ret)
{
	_cleanup_close_ int ours = -1;
	int pair[2];
	pid_t pid;

	ret->status = 0;
	ret->output[0] = '\0';
	if (pipe2(pair, O_CLOEXEC) < 0) {
		ret->status = -errno;
		return;
	}
	ours = pair[0];
	pid = fork();
	if (pid == 0)
		client_become(arguments, input, pair[1]);
	(void)close(pair[1]);
	if (pid < 0)
		ret->status = -errno;
	else
		client_attend(pid, ours, timeout_s, ret);
}
