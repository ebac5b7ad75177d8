/* SPDX-License-Identifier: Apache-2.0 */

#include "vcuda/manager/closer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83 /* since Linux 6.16 */
#endif

void closer_refuse(int fd)
{
	(void)setsockopt(fd, SOL_SOCKET, SO_PASSRIGHTS, &(int){0}, sizeof(int));
}

static bool closer_was_refused(int fd)
{
	int passes = 1;
	socklen_t size = sizeof(passes);

	return getsockopt(fd, SOL_SOCKET, SO_PASSRIGHTS, &passes, &size) == 0 && !passes;
}

/* The last who has it. A process that ends waits for no SO_LINGER, and if it waits for anything else, nobody minds. */
static _Noreturn void closer_be_last(const int until[2])
{
	char byte;

	(void)close(until[1]);
	while (read(until[0], &byte, 1) < 0 && errno == EINTR)
		;
	_exit(0);
}

/* Those before. They are of our process group; servers lead their own. */
static void closer_reap(void)
{
	while (waitpid(0, NULL, WNOHANG) > 0)
		;
}

static bool closer_needs_another(const int *fds, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (fds[i] >= 0 && !closer_was_refused(fds[i]))
			return true;
	return false;
}

void closer_close(const int *fds, size_t count)
{
	_cleanup_close_ int hears = -1, says = -1;
	int until[2];
	pid_t pid = -1;

	closer_reap();
	if (closer_needs_another(fds, count) && pipe2(until, O_CLOEXEC) == 0) {
		hears = until[0];
		says = until[1];
		pid = fork();
	}
	if (pid == 0)
		closer_be_last(until);
	for (size_t i = 0; i < count; i++)
		cleanup_closep(&fds[i]);
}
