/* SPDX-License-Identifier: Apache-2.0 */

#include "vcuda/manager/manager.h"

#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "vcuda/protocol/pidref.h"

enum { KEEPER_DESCRIPTORS = 4096 /* as many as the manager may have */ };

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

static void keeper_end_child(pid_t pid)
{
	int wait_status;

	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, &wait_status, 0);
}

/* One of a manager before this one is no child of this one's, and its number may be another's by now. */
static void keeper_end(const struct keeper *keeper)
{
	_cleanup_close_ int pidfd = -1;

	if (keeper->pid && !keeper->adopted)
		keeper_end_child(keeper->pid);
	else if (keeper->pid && pidref_open(keeper->pid, keeper->started, &pidfd, NULL) == 0)
		pidref_signal(pidfd, SIGKILL);
}

static struct keeper keeper_start(struct manager *manager)
{
	struct keeper keeper = {.pid = fork()};
	_cleanup_close_ int pidfd = -1;

	if (keeper.pid == 0)
		keeper_run(manager);
	if (keeper.pid > 0 && pidref_open(keeper.pid, 0, &pidfd, &keeper.started) == 0)
		return keeper;
	/* The next manager would not know it. */
	if (keeper.pid > 0)
		keeper_end_child(keeper.pid);
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

/*
 * The next one has what is there, and is written down, before the last one lets it go: a manager that is killed in
 * between leaves a file that is right. What could not be started, or written down, is tried again at the next look.
 */
void keeper_look(struct manager *manager)
{
	if (manager->remnants_changed)
		keeper_renew(manager);
	if (manager->keeper.pid == manager->keeper_written.pid || state_file_write(manager) < 0)
		return;
	keeper_end(&manager->keeper_written);
	manager->keeper_written = manager->keeper;
}
