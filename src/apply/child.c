/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A child does the work that may wait for ever. A filesystem that does not answer (9p, FUSE, NFS) blocks a process in
 * the kernel, where no signal handler runs and SIGKILL often has no effect. So the parent touches no such filesystem.
 * When the time is over, it kills the child, starts another child that undoes the listed changes, and goes on without
 * them. A child that is still blocked has SIGKILL pending, and does nothing more when it wakes.
 *
 * Both share one table of descriptors, so the listed changes keep their descriptors after the child's end. The child is
 * in the container's namespaces; the parent never is.
 */

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "apply/internal.h"
#include "base/clock.h"
#include "lib/context.h"
#include "process/phase.h"
#include "process/sanitise.h"
#include "root/mount.h"

enum {
	END_MS = 1000,  /* for a child to end once it is killed */
	UNDO_MS = 5000, /* for all that is taken back */
	DESCRIPTORS = 1024,
};

/* Signals that end the work early. The parent receives them, and has the changes undone. */
static const int stops[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT};

/* ---- the child's side ---- */

static struct undo_log *own_undo_log;

/* The parent has died, or another process sent the signal to the child alone. */
static void child_undo_record(int number)
{
	undo_log_undo(own_undo_log);
	(void)signal(number, SIG_DFL);
	(void)kill(getpid(), number);
}

/* @alone: the program is here for this work, and has nothing else open */
static void child_prepare(struct undo_log *undo_log, bool alone, pid_t parent, const sigset_t *mask)
{
	sigset_t own = *mask;

	own_undo_log = undo_log;
	undo_log_limit_descriptors(true, alone);
	sanitise_ignore_signals();
	(void)signal(SIGTERM, child_undo_record);
	(void)prctl(PR_SET_PDEATHSIG, SIGTERM);
	/* A terminal sends them to parent and child. */
	for (size_t i = 0; i < ARRAY_SIZE(stops); i++)
		(void)sigaddset(&own, stops[i]);
	(void)sigdelset(&own, SIGTERM);
	(void)sigprocmask(SIG_SETMASK, &own, NULL);
	if (getppid() != parent)
		child_undo_record(SIGTERM);
}

/* A shared table waits for every CPU when it grows: 30 ms with 32 CPUs. So it grows before it is shared. */
static void child_grow_descriptors(const struct ctr_gpu_context *context)
{
	int fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, DESCRIPTORS - 1);

	if (!context->ends)
		cleanup_closep(&fd);
}

/*
 * The child begins on the parent's CPU. This CPU is free while the parent waits, it has the memory of both in its
 * caches, and the child's end wakes no other CPU. To wake an idle CPU takes 20 to 50 us in a virtual machine.
 */
struct child_cpus {
	bool known; /* all these are to be restored */
	cpu_set_t all;
};

static void child_keep_cpu(struct child_cpus *ret)
{
	const int cpu = sched_getcpu();
	cpu_set_t one;

	CPU_ZERO(&one);
	ret->known = false;
	if (cpu < 0 || cpu >= CPU_SETSIZE || sched_getaffinity(0, sizeof(ret->all), &ret->all) < 0)
		return;
	CPU_SET((size_t)cpu, &one);
	ret->known = sched_setaffinity(0, sizeof(one), &one) == 0;
}

static void child_restore_cpus(const struct child_cpus *cpus)
{
	if (cpus->known)
		(void)sched_setaffinity(0, sizeof(cpus->all), &cpus->all);
}

/* fork(2) with one table of descriptors; libc has no call for it. Nothing waits in stdout that both would write. */
static pid_t child_start(void)
{
	(void)fflush(NULL);
	return (pid_t)syscall(SYS_clone, CLONE_FILES | SIGCHLD, 0, 0, 0, 0);
}

/* ---- waiting ---- */

/*
 * @signals: blocked; SIGCHLD is one of them, and any other ends the waiting
 * @end:     when it ends, by clock_now_ms()
 *
 * Return: 0 with a status of waitpid(2); -ETIMEDOUT; -EINTR with the signal in @ret_status.
 */
static int child_wait(pid_t pid, const sigset_t *signals, int64_t end, int *ret_status)
{
	for (;;) {
		int64_t left = end - clock_now_ms();
		struct timespec wait = {left / 1000, left % 1000 * 1000000};
		int number = left < 0 ? 0 : sigtimedwait(signals, NULL, &wait);
		pid_t ended;

		if (number > 0 && number != SIGCHLD) {
			*ret_status = number;
			return -EINTR;
		}
		ended = waitpid(pid, ret_status, WNOHANG);
		if (ended == pid)
			return 0;
		if (ended < 0 && errno != EINTR)
			return -errno;
		if (number == 0)
			return -ETIMEDOUT;
	}
}

/* The same, whatever signals come. */
static int child_wait_only(pid_t pid, unsigned milliseconds)
{
	sigset_t children;
	int ignored;

	(void)sigemptyset(&children);
	(void)sigaddset(&children, SIGCHLD);
	return child_wait(pid, &children, clock_now_ms() + milliseconds, &ignored);
}

static void child_kill(pid_t pid)
{
	(void)kill(pid, SIGKILL);
	(void)child_wait_only(pid, END_MS);
}

/* ---- taking back ---- */

static _Noreturn void child_undo_in_child(struct undo_log *undo_log)
{
	static const int types[] = {CLONE_NEWUSER, CLONE_NEWNS};
	bool entered = true;

	sanitise_ignore_signals();
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* The table is full of the dead child's. */
	undo_log_limit_descriptors(false, false);
	/* The dead child's /proc/self/fd is empty. */
	cleanup_closep(&undo_log->proc_self_fd);
	undo_log->proc_self_fd = mount_open_proc_self_fd(-1);
	if (phase_enter(PHASE_GIVE) < 0)
		entered = false;
	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		if (undo_log->namespaces[i] >= 0 &&
		    (setns(undo_log->namespaces[i], types[i]) < 0 || phase_limit(PHASE_GIVE) < 0))
			entered = false;
	if (entered)
		undo_log_undo(undo_log);
	_exit(EXIT_SUCCESS);
}

static void child_undo(struct undo_log *undo_log)
{
	pid_t pid;

	if (undo_log->count == 0)
		return;
	pid = child_start();
	if (pid == 0)
		child_undo_in_child(undo_log);
	if (pid > 0 && child_wait_only(pid, UNDO_MS) < 0)
		child_kill(pid);
}

/* ---- what went wrong ---- */

/* What to say of steps that could not be undone. The one that failed is the last on the list. */
static const char *child_leftovers(const struct ctr_gpu_context *context, const struct undo_log *undo_log,
				   char text[256])
{
	if (context->takes_back)
		return "What has not been taken back stays; try again.";
	if (undo_log->count == 0)
		return "Nothing of what was done stays in the container.";
	(void)snprintf(
		text, 256,
		"%zu of its changes to the container could not be taken back (the last: %.128s); remove the container.",
		undo_log->count,
		undo_log->items[undo_log->count - 1].name[0] ? undo_log->items[undo_log->count - 1].name : "a mount");
	return text;
}

/* @r and @wait_status: what child_wait() returned. */
static int child_explain(struct ctr_gpu_context *context, const struct undo_log *undo_log, int r, int wait_status)
{
	struct err *err = &context->err;
	char text[256];

	switch (r) {
	case 0:
		return err_set_advised(err, -ECHILD,
				       ("the process that did the work was ended by signal %d (%s) while %s.",
					WTERMSIG(wait_status), strsignal(WTERMSIG(wait_status)), undo_log->step),
				       ("%s", child_leftovers(context, undo_log, text)));
	case -EINTR:
		return err_set_advised(
			err, r,
			("stopped by signal %d (%s) while %s.", wait_status, strsignal(wait_status), undo_log->step),
			("%s", child_leftovers(context, undo_log, text)));
	case -ETIMEDOUT:
		return err_advise(
			err,
			err_set_advised(
				err, r, ("gave up after %u s while %s", context->settings.deadline_s, undo_log->step),
				("A file system does not answer (9p, FUSE, NFS); find it with: df. For more time: "
				 "\"deadline\", ctr-gpu-config(5).")),
			"%s", child_leftovers(context, undo_log, text));
	default:
		return err_set(err, r, "cannot wait for the process that does the work: %m");
	}
}

/* ---- all of it ---- */

static int child_wait_for_work(struct ctr_gpu_context *context, pid_t pid, struct undo_log *undo_log,
			       const sigset_t *signals, int64_t end, int *ret_status)
{
	int wait_status = 0, r = child_wait(pid, signals, end, &wait_status);

	if (r == 0 && WIFEXITED(wait_status)) {
		if (WEXITSTATUS(wait_status) != 0)
			child_undo(undo_log);
		else
			layer_save(undo_log, context->ends);
		/* The end of the program releases everything. */
		if (context->ends)
			exit(WEXITSTATUS(wait_status));
		*ret_status = WEXITSTATUS(wait_status);
		return 0;
	}
	if (r < 0)
		child_kill(pid);
	child_undo(undo_log);
	return child_explain(context, undo_log, r, wait_status);
}

/* What the caller has registered with atexit(3) is the parent's to do. */
static _Noreturn void child_end(int r)
{
	(void)fflush(NULL);
	_exit(r);
}

static int child_run(struct ctr_gpu_context *context, int (*work)(void *user), void *user, const sigset_t *signals,
		     const sigset_t *mask, int *ret_status)
{
	struct undo_log *undo_log = undo_log_new(true);
	pid_t pid, parent = getpid(), caller = getppid();
	struct child_cpus cpus;
	int64_t end;
	int r;

	if (!undo_log)
		return err_set(&context->err, -ENOMEM, "%m");
	undo_log_progress(undo_log, context->takes_back ? "taking back what was given" : "beginning", NULL);
	context->ends = !ret_status;
	child_grow_descriptors(context);
	child_keep_cpu(&cpus);
	/* Before the child starts: libc looks for the kernel's clock once, which takes three page faults. */
	end = clock_now_ms() + context->settings.deadline_s * INT64_C(1000);
	pid = child_start();
	if (pid == 0) {
		child_restore_cpus(&cpus);
		child_prepare(undo_log, context->ends, parent, mask);
		context->undo_log = undo_log;
		context->caller = caller;
		child_end(work(user));
	}
	r = pid < 0 ? err_set(&context->err, -errno, "cannot start a child process: %m")
		    : child_wait_for_work(context, pid, undo_log, signals, end, ret_status);
	child_restore_cpus(&cpus);
	(void)undo_log_free(undo_log);
	return r;
}

int ctr_gpu_run_in_child(struct ctr_gpu_context *context, int (*work)(void *user), void *user, int *ret_status)
{
	struct sigaction children = {.sa_handler = SIG_DFL}, old;
	sigset_t signals, mask;
	int r;

	(void)sigemptyset(&signals);
	(void)sigaddset(&signals, SIGCHLD);
	for (size_t i = 0; i < ARRAY_SIZE(stops); i++)
		(void)sigaddset(&signals, stops[i]);
	(void)sigprocmask(SIG_BLOCK, &signals, &mask);
	/* If SIGCHLD is ignored, children leave no status. */
	(void)sigaction(SIGCHLD, &children, &old);
	r = child_run(context, work, user, &signals, &mask, ret_status);
	(void)sigaction(SIGCHLD, &old, NULL);
	(void)sigprocmask(SIG_SETMASK, &mask, NULL);
	return r;
}
