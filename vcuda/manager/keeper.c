/* SPDX-License-Identifier: Apache-2.0 */

#include "vcuda/manager/manager.h"

#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "vcuda/protocol/pidref.h"

enum {
	KEEPER_DESCRIPTORS = 4096, /* as many as the manager may have */
	AGAIN_MS = 1000,
};

/* ---- in the child ---- */

static bool keeper_needs(const struct manager *manager, int fd)
{
	for (const struct remnant *remnant = manager->remnants; remnant; remnant = remnant->next)
		if (remnant->fd == fd || remnant->client == fd)
			return true;
	return false;
}

/* Whoever connects to a socket of the manager's is to find that it is gone. */
static _Noreturn void keeper_run(struct manager *manager)
{
	(void)signal(SIGTERM, SIG_DFL);
	(void)signal(SIGINT, SIG_DFL);
	(void)setsid();
	(void)prctl(PR_SET_NAME, "ctr-gpu-keeper");
	for (int fd = 0; fd < KEEPER_DESCRIPTORS; fd++)
		if (!keeper_needs(manager, fd))
			(void)close(fd);
	remnant_wait(manager);
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

/* The one that the file names stays, and one that it never named goes. */
static void keeper_renew(struct manager *manager)
{
	if (manager->keeper.pid != manager->keeper_written.pid)
		keeper_end(&manager->keeper);
	manager->keeper = manager->remnants ? keeper_start(manager) : (struct keeper){0};
	manager->remnants_changed = manager->remnants && !manager->keeper.pid;
	manager->changed = true;
}

/* By itself it ends with the last client. Or somebody has killed it, or the kernel, which had no memory. */
static bool keeper_has_ended(const struct manager *manager)
{
	return manager->keeper.pid && pidref_has_ended(manager->keeper.pidfd);
}

int keeper_wait_for(const struct manager *manager, int64_t now, int64_t *ret_next)
{
	const int64_t may = manager->keeper.began + AGAIN_MS;

	*ret_next = INT64_MAX;
	if (keeper_has_ended(manager)) {
		*ret_next = may > now ? may : now;
		return -1;
	}
	return manager->keeper.pid ? manager->keeper.pidfd : -1;
}

/*
 * The next one has what is there, and is written down, before the last one lets it go: a manager that is killed in
 * between leaves a file that is right. What could not be started, or written down, is tried again at the next look.
 */
void keeper_look(struct manager *manager)
{
	if (manager->remnants_changed ||
	    (keeper_has_ended(manager) && manager_now() >= manager->keeper.began + AGAIN_MS))
		keeper_renew(manager);
	if (manager->keeper.pid == manager->keeper_written.pid || state_file_write(manager) < 0)
		return;
	keeper_end(&manager->keeper_written);
	manager->keeper_written = manager->keeper;
}
