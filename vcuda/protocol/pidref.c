/* SPDX-License-Identifier: Apache-2.0 */

/* Processes that may end while they are looked at, and descriptors that others send. */

#include "vcuda/protocol/pidref.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/str.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77 /* since Linux 6.5 */
#endif

enum { STAT_MAX = 4096 };

/* Field 22 of proc_pid_stat(5). The name, which may hold anything, ends with the last parenthesis. */
static int pidref_read_start(pid_t pid, uint64_t *ret)
{
	_cleanup_free_ char *text = NULL;
	const char *rest;
	char path[32];

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	if (fd_read_kernel_file(AT_FDCWD, path, STAT_MAX, &text) < 0 || !(rest = strrchr(text, ')')) ||
	    sscanf(rest + 1, " %*c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %" SCNu64,
		   ret) != 1)
		return -ESRCH;
	return 0;
}

/* The time is read of a process that is held: it cannot be another's if this one still lives. */
static int pidref_identify(int pidfd, pid_t pid, uint64_t started, uint64_t *ret_started)
{
	uint64_t now = 0;
	int r = pidref_read_start(pid, &now);

	if (r < 0 || pidref_has_ended(pidfd) || (started && started != now))
		return -ESRCH;
	if (ret_started)
		*ret_started = now;
	return 0;
}

int pidref_open(pid_t pid, uint64_t started, int *ret_pidfd, uint64_t *ret_started)
{
	_cleanup_close_ int pidfd = pid > 0 ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;
	int r = pidfd >= 0 ? pidref_identify(pidfd, pid, started, ret_started) : pid > 0 ? -errno : -ESRCH;

	if (r == 0)
		*ret_pidfd = steal_fd(&pidfd);
	return r;
}

int pidref_open_child(pid_t pid, int *ret_pidfd, uint64_t *ret_started)
{
	_cleanup_close_ int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	int r = pidfd < 0 ? -errno : pidref_read_start(pid, ret_started);

	if (r == 0)
		*ret_pidfd = steal_fd(&pidfd);
	return r;
}

int pidref_open_peer(int socket_fd, int *ret_pidfd, uint64_t *ret_started, struct ucred *ret_who)
{
	_cleanup_close_ int pidfd = -1;
	socklen_t who_size = sizeof(*ret_who), size = sizeof(pidfd);
	int r;

	if (getsockopt(socket_fd, SOL_SOCKET, SO_PEERCRED, ret_who, &who_size) < 0)
		return -errno;
	if (getsockopt(socket_fd, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &size) < 0) {
		pidfd = -1;
		/* Until Linux 6.15 there is none of a process that is gone. */
		return errno == ENOPROTOOPT ? pidref_open(ret_who->pid, 0, ret_pidfd, ret_started) : -ESRCH;
	}
	r = pidref_identify(pidfd, ret_who->pid, 0, ret_started);
	if (r == 0)
		*ret_pidfd = steal_fd(&pidfd);
	return r;
}

bool pidref_has_ended(int pidfd)
{
	struct pollfd end = {.fd = pidfd, .events = POLLIN};

	return poll(&end, 1, 0) > 0;
}

void pidref_signal(int pidfd, int number)
{
	(void)syscall(SYS_pidfd_send_signal, pidfd, number, NULL, 0);
}

bool pidref_is_of_this_namespace(pid_t pid)
{
	struct stat own, its;
	char path[48];

	(void)snprintf(path, sizeof(path), "/proc/%d/ns/pid", (int)pid);
	return stat("/proc/self/ns/pid", &own) == 0 && stat(path, &its) == 0 && own.st_dev == its.st_dev &&
	       own.st_ino == its.st_ino;
}

/* Of a server, or one that is about to become it; an update of the package may have removed its file. */
bool pidref_is_ctr_gpu(pid_t pid)
{
	_cleanup_free_ char *program = NULL;
	const char *name;
	char path[32];

	(void)snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
	if (fd_read_link_at(AT_FDCWD, path, &program) < 0)
		return false;
	name = strrchr(program, '/');
	return name && str_has_prefix(name, "/ctr-gpu-vcuda") && !str_has_prefix(name, "/ctr-gpu-vcuda-");
}

/* ---- closing what others have sent ---- */

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
