/* SPDX-License-Identifier: Apache-2.0 */

#include "process/sanitise.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "process/phase.h"

/* ---- deadline ---- */

enum { INHERITED_MAX = 1024 };

static const char *volatile last_words;

/* Only what signal-safety(7) allows. */
static void deadline_print(const char *text)
{
	ssize_t written;

	written = write(STDERR_FILENO, text, strlen(text));
	(void)written;
}

static void deadline_give_up(int number)
{
	(void)number;
	deadline_print(last_words);
	deadline_print("\n");
	_exit(1);
}

void deadline_set(unsigned seconds, const char *sentence)
{
	if (!last_words)
		(void)signal(SIGALRM, deadline_give_up);
	last_words = sentence;
	(void)alarm(seconds);
}

void deadline_let_go(void)
{
	for (int fd = 0; fd < INHERITED_MAX; fd++)
		if (fcntl(fd, F_GETFD) == 0)
			(void)close(fd);
}

/* ---- what is inherited ---- */

static int sanitise_clear_environment(void)
{
	return clearenv() ? -ENOMEM : 0;
}

/* Looks for the lowest free number, which needs no path. */
static bool sanitise_has_standard_descriptors(void)
{
	int fd = fcntl(STDIN_FILENO, F_DUPFD, 0);

	if (fd >= 0 && fd <= STDERR_FILENO)
		(void)close(fd);
	return fd > STDERR_FILENO;
}

static int sanitise_close_descriptors(void)
{
	int fd = STDERR_FILENO + sanitise_has_standard_descriptors();

	/* open(2) takes the lowest free number, so this ends once 0, 1 and 2 are there. */
	while (fd >= 0 && fd <= STDERR_FILENO)
		fd = open("/dev/null", O_RDWR);
	if (fd < 0)
		return -errno;
	closefrom(STDERR_FILENO + 1);
	return 0;
}

static bool has_mask;

bool sanitise_has_mask(void)
{
	return has_mask;
}

static int sanitise_leave_directory(void)
{
	(void)umask(S_IWGRP | S_IWOTH);
	has_mask = true;
	return chdir("/") < 0 ? -errno : 0;
}

void sanitise_ignore_signals(void)
{
	static bool ignored;

	if (ignored)
		return;
	/* SIGPIPE: writing to the standard error of an engine that has ended must not stop us halfway. */
	(void)signal(SIGPIPE, SIG_IGN);
	/* SIGXFSZ: exceeding RLIMIT_FSIZE is an error of write(2) instead. */
	(void)signal(SIGXFSZ, SIG_IGN);
	ignored = true;
}

/* exec(2) resets handlers, but signals that the caller ignored stay ignored; these are needed. */
static int sanitise_reset_signals(void)
{
	sigset_t none;

	/* ctr_gpu_run_in_child() resets SIGCHLD itself. */
	(void)signal(SIGTERM, SIG_DFL);
	sanitise_ignore_signals();
	(void)sigemptyset(&none);
	return sigprocmask(SIG_SETMASK, &none, NULL) < 0 ? -errno : 0;
}

static int sanitise_forbid_gain(void)
{
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ? -errno : 0;
}

static int sanitise_forbid_inspection(void)
{
	const struct rlimit none = {0};

	if (setrlimit(RLIMIT_CORE, &none) < 0)
		return -errno;
	return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 ? -errno : 0;
}

static int sanitise_drop_capabilities(void)
{
	return phase_enter(PHASE_BEGIN);
}

int sanitise(const char **ret_step)
{
	static const struct {
		int (*take)(void);
		const char *what;
	} steps[] = {
		{sanitise_clear_environment, "clear the environment"},
		{sanitise_close_descriptors, "close inherited descriptors"},
		{sanitise_leave_directory, "leave the working directory"},
		{sanitise_reset_signals, "reset the signals"},
		{sanitise_forbid_gain, "set no_new_privs"},
		{sanitise_drop_capabilities, "drop capabilities"},
		/* Last: a change of capabilities may put the old value back (kernel/cred.c, commit_creds()). */
		{sanitise_forbid_inspection, "forbid core files and debuggers"},
	};

	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		int r = steps[i].take();

		if (r) {
			*ret_step = steps[i].what;
			return r;
		}
	}
	return 0;
}
