/* SPDX-License-Identifier: Apache-2.0 */

#include "vcuda/manager/manager.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "vcuda/protocol/descriptors.h"

enum {
	LENDER_GIVER, /* its descriptors: a pidfd, and a socket */
	LENDER_TAKER,
	LENDER_FDS,
	ABOVE = 16,
};

/* ---- in the child ---- */

/* Memory, and what NVIDIA's driver makes of memory of a GPU: a descriptor of its control node. */
static bool lender_is_memory(int fd)
{
	enum { NVIDIA_MAJOR = 195, NVIDIA_CONTROL = 255 };
	struct statx st;

	return fcntl(fd, F_GET_SEALS) >= 0 ||
	       (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &st) == 0 && S_ISCHR(st.stx_mode) &&
		st.stx_rdev_major == NVIDIA_MAJOR && st.stx_rdev_minor == NVIDIA_CONTROL);
}

/* It closes what it took at its end alone, after all else; there it may stay for as long as a file system likes. */
static _Noreturn void lender_run(int giver, int taker, const struct start_event *event)
{
	int fd;

	(void)setpgid(0, 0);
	(void)signal(SIGTERM, SIG_DFL);
	(void)signal(SIGINT, SIG_DFL);
	giver = fcntl(giver, F_DUPFD_CLOEXEC, ABOVE);
	taker = fcntl(taker, F_DUPFD_CLOEXEC, ABOVE);
	if (dup2(giver, LENDER_GIVER) < 0 || dup2(taker, LENDER_TAKER) < 0 || close_range(LENDER_FDS, ~0U, 0) < 0)
		_exit(0);
	fd = (int)syscall(SYS_pidfd_getfd, LENDER_GIVER, (int)(uint32_t)event->number, 0);
	(void)descriptors_send(LENDER_TAKER, event, sizeof(*event), &fd, fd >= 0 && lender_is_memory(fd), MSG_DONTWAIT);
	_exit(0);
}

/* ---- its life ---- */

/*
 * A server has what it gives others at numbers where nothing of its driver's is. Return: a pidfd of the container's
 * server in that slot; -1.
 */
static int lender_find_giver(const struct manager *manager, const struct tenant *tenant, uint64_t wanted)
{
	for (const struct worker *worker = manager->workers; worker; worker = worker->next)
		if (worker->tenant == tenant && worker->slot == wanted >> 32 && (uint32_t)wanted >= SHARE_FD)
			return worker->pidfd;
	return -1;
}

void lender_lend(const struct manager *manager, struct worker *worker, const struct start_event *event)
{
	const int giver = lender_find_giver(manager, worker->tenant, event->number);
	const pid_t pid = giver >= 0 ? fork() : -1;

	if (pid == 0)
		lender_run(giver, worker->events, event);
	if (pid < 0) {
		(void)descriptors_send(worker->events, event, sizeof(*event), NULL, 0, MSG_DONTWAIT);
		return;
	}
	/* Out of ours, whose children fd_closer.c waits for. */
	(void)setpgid(pid, 0);
	worker->lender = pid;
	worker->lender_pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
}

bool lender_is_at_work(struct worker *worker)
{
	if (!worker->lender)
		return false;
	if (waitpid(worker->lender, NULL, WNOHANG) == 0)
		return true;
	worker->lender = 0;
	cleanup_closep(&worker->lender_pidfd);
	return false;
}
