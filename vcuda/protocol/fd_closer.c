/* SPDX-License-Identifier: Apache-2.0 */

#include "vcuda/protocol/pidref.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83 /* since Linux 6.16 */
#endif

enum { INTERVAL_US = 10000 };

void fd_closer_refuse(int fd)
{
	(void)setsockopt(fd, SOL_SOCKET, SO_PASSRIGHTS, &(int){0}, sizeof(int));
}

static bool fd_closer_was_refused(int fd)
{
	int passes = 1;
	socklen_t size = sizeof(passes);

	return getsockopt(fd, SOL_SOCKET, SO_PASSRIGHTS, &passes, &size) == 0 && !passes;
}

/* The last process with the descriptor. At exit it does not wait for SO_LINGER, and no other process waits for it. */
static _Noreturn void fd_closer_be_last(const int until[2])
{
	char byte;

	(void)close(until[1]);
	while (read(until[0], &byte, 1) < 0 && errno == EINTR)
		;
	_exit(0);
}

/* Those before. They are of our process group; servers lead their own. */
static void fd_closer_reap(void)
{
	while (waitpid(0, NULL, WNOHANG) > 0)
		;
}

/* Return: whether another process has them, too, until the pipe is closed. */
static bool fd_closer_share(int ret_until[2])
{
	pid_t pid;

	if (pipe2(ret_until, O_CLOEXEC) < 0)
		return false;
	pid = fork();
	if (pid == 0)
		fd_closer_be_last(ret_until);
	if (pid > 0)
		return true;
	(void)close(ret_until[0]);
	(void)close(ret_until[1]);
	return false;
}

static void fd_closer_go_on(int number)
{
	(void)number;
}

/* Where there is no other process to be had. A signal ends what SO_LINGER waits for, if nothing else. */
static void fd_closer_close_interrupted(int *fd)
{
	const struct itimerval soon = {{0, INTERVAL_US}, {0, INTERVAL_US}}, never = {0};
	const struct sigaction go_on = {.sa_handler = fd_closer_go_on};

	(void)sigaction(SIGALRM, &go_on, NULL);
	(void)setitimer(ITIMER_REAL, &soon, NULL);
	cleanup_closep(fd);
	(void)setitimer(ITIMER_REAL, &never, NULL);
}

void fd_closer_close(int *fd)
{
	int until[2];

	fd_closer_reap();
	if (*fd < 0 || fd_closer_was_refused(*fd)) {
		cleanup_closep(fd);
		return;
	}
	if (!fd_closer_share(until)) {
		fd_closer_close_interrupted(fd);
		return;
	}
	cleanup_closep(fd);
	(void)close(until[0]);
	(void)close(until[1]);
}

/* It peeks first, which receives no descriptors, and takes the data only if it came without any. */
ssize_t fd_closer_receive(int fd, void *data, size_t size)
{
	struct iovec vector = {data, size};
	struct msghdr message = {.msg_iov = &vector, .msg_iovlen = 1};
	const ssize_t r = recvmsg(fd, &message, MSG_DONTWAIT | MSG_TRUNC | MSG_PEEK);

	if (r <= 0 || message.msg_flags & MSG_CTRUNC)
		return r < 0 ? r : 0;
	(void)recv(fd, data, 0, MSG_DONTWAIT);
	return r;
}
