/* SPDX-License-Identifier: Apache-2.0 */

#include "vcuda/manager/manager.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "vcuda/protocol/pidref.h"

enum {
	KEEPER_DESCRIPTORS = 4096, /* as many as the manager may have */
	ENDS_MAX = 2 * MANAGER_REMNANTS_MAX + MANAGER_WORKERS_MAX,
	AGAIN_MS = 1000,
};

/* ---- in the child ---- */

static bool keeper_needs(const struct manager *manager, int fd)
{
	for (const struct remnant *remnant = manager->remnants; remnant; remnant = remnant->next)
		if (remnant->fd == fd || remnant->client == fd)
			return true;
	for (const struct worker *worker = manager->workers; worker; worker = worker->next)
		if (worker->events == fd)
			return true;
	return false;
}

/* A server that ends hangs up. Return: how many ends there are to be waited for. */
static nfds_t keeper_gather(struct manager *manager, struct pollfd ends[static ENDS_MAX])
{
	nfds_t count = 0;

	remnant_drop_ended(manager);
	for (const struct remnant *remnant = manager->remnants; remnant && count < ENDS_MAX; remnant = remnant->next)
		ends[count++] = (struct pollfd){.fd = remnant->client, .events = POLLIN};
	for (const struct worker *worker = manager->workers; worker && count < ENDS_MAX; worker = worker->next)
		if (worker->events >= 0)
			ends[count++] = (struct pollfd){.fd = worker->events};
	return count;
}

static void keeper_forget_ended(const struct manager *manager)
{
	for (struct worker *worker = manager->workers; worker; worker = worker->next) {
		struct pollfd end = {.fd = worker->events};

		if (worker->events >= 0 && poll(&end, 1, 0) > 0)
			worker->events = -1;
	}
}

/* Whoever connects to a socket of the manager's is to find that it is gone. */
static _Noreturn void keeper_run(struct manager *manager)
{
	static struct pollfd ends[ENDS_MAX];
	nfds_t count;

	(void)signal(SIGTERM, SIG_DFL);
	(void)signal(SIGINT, SIG_DFL);
	(void)setsid();
	(void)prctl(PR_SET_NAME, "ctr-gpu-keeper");
	for (int fd = 0; fd < KEEPER_DESCRIPTORS; fd++)
		if (!keeper_needs(manager, fd))
			(void)close(fd);
	while ((count = keeper_gather(manager, ends)) > 0) {
		(void)poll(ends, count, -1);
		keeper_forget_ended(manager);
	}
	_exit(0);
}

/* ---- its life ---- */

/* One of a manager before this one is no child of this one's. */
static void keeper_end(struct keeper *keeper)
{
	int wait_status;

	if (keeper->pid == 0)
		return;
	pidref_signal(keeper->pidfd, SIGKILL);
	if (!keeper->adopted)
		(void)waitpid(keeper->pid, &wait_status, 0);
	cleanup_closep(&keeper->pidfd);
}

static struct keeper keeper_start(struct manager *manager)
{
	struct keeper keeper = {.pid = fork(), .began = manager_now()};

	if (keeper.pid == 0)
		keeper_run(manager);
	if (keeper.pid > 0 && pidref_open(keeper.pid, 0, &keeper.pidfd, &keeper.started) == 0)
		return keeper;
	/* The next manager would not know it. */
	if (keeper.pid > 0) {
		(void)kill(keeper.pid, SIGKILL);
		(void)waitpid(keeper.pid, NULL, 0);
	}
	return (struct keeper){0};
}

/* Whether there is something that it is to have. */
static bool keeper_is_needed(const struct manager *manager)
{
	bool any = manager->remnants;

	for (const struct worker *worker = manager->workers; worker; worker = worker->next)
		any |= worker->events >= 0;
	return any;
}

/* What it has, by the numbers that they have here. */
static void keeper_mark(const struct manager *manager)
{
	for (struct worker *worker = manager->workers; worker; worker = worker->next)
		worker->events_kept = worker->events >= 0 ? worker->events : 0;
	for (struct remnant *remnant = manager->remnants; remnant; remnant = remnant->next)
		remnant->fd_kept = remnant->fd;
}

/*
 * The one that the file names stays, and one that it never named goes. Where none can be started, the one before is
 * better than none: it has what there was then.
 */
static void keeper_renew(struct manager *manager)
{
	struct keeper next = {0};

	if (keeper_is_needed(manager)) {
		next = keeper_start(manager);
		manager->remnants_changed = !next.pid;
		manager->keeper.began = manager_now();
		if (!next.pid)
			return;
	}
	if (manager->keeper.pid != manager->keeper_written.pid)
		keeper_end(&manager->keeper);
	keeper_mark(manager);
	manager->keeper = next;
	manager->remnants_changed = manager->channels_changed = false;
	manager->changed = true;
}

/* By itself it ends with the last client and server. Or somebody has killed it, or the kernel, which had no memory. */
static bool keeper_has_ended(const struct manager *manager)
{
	return manager->keeper.pid && pidref_has_ended(manager->keeper.pidfd);
}

int keeper_wait_for(const struct manager *manager, int64_t now, int64_t *ret_next)
{
	const int64_t may = manager->keeper.began + AGAIN_MS;
	const bool ended = keeper_has_ended(manager);

	*ret_next = !ended && !manager->channels_changed && !manager->remnants_changed ? INT64_MAX
		    : may > now                                                        ? may
										       : now;
	return manager->keeper.pid && !ended ? manager->keeper.pidfd : -1;
}

/* What could not be written down is tried again at the next look. */
static void keeper_settle(struct manager *manager)
{
	if (manager->keeper.pid == manager->keeper_written.pid || state_file_write(manager) < 0)
		return;
	keeper_end(&manager->keeper_written);
	manager->keeper_written = manager->keeper;
}

/*
 * The next one has what is there, and is written down, before the last one lets it go: a manager that is killed in
 * between leaves a file that is right. What could not be started is tried again at the next look.
 */
void keeper_look(struct manager *manager)
{
	if (manager->remnants_changed || ((manager->channels_changed || keeper_has_ended(manager)) &&
					  manager_now() >= manager->keeper.began + AGAIN_MS))
		keeper_renew(manager);
	keeper_settle(manager);
}

void keeper_finish(struct manager *manager)
{
	if (manager->channels_changed || manager->remnants_changed)
		keeper_renew(manager);
	keeper_settle(manager);
}
