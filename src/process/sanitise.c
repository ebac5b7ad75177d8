/* SPDX-License-Identifier: Apache-2.0 */

#include "process/sanitise.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/capability.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static int clear_environment(void)
{
	return clearenv() ? -ENOMEM : 0;
}

static int close_descriptors(void)
{
	int fd;

	/* open(2) takes the lowest free number, so this ends once 0, 1 and 2 are there. */
	do
		fd = open("/dev/null", O_RDWR);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd < 0)
		return -errno;
	closefrom(STDERR_FILENO + 1);
	return 0;
}

static int leave_directory(void)
{
	(void)umask(S_IWGRP | S_IWOTH);
	return chdir("/") < 0 ? -errno : 0;
}

/* An exec leaves no handlers, but what the caller ignored stays ignored; these would be missed. */
static int reset_signals(void)
{
	static const int needed[] = {SIGTERM, SIGCHLD};
	sigset_t none;

	for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++)
		(void)signal(needed[i], SIG_DFL);
	/* An engine that is gone, with the other end of standard error, must not end the work half done. */
	(void)signal(SIGPIPE, SIG_IGN);
	/* Nor a limit on the size of files (RLIMIT_FSIZE), which is an error of the writing then. */
	(void)signal(SIGXFSZ, SIG_IGN);
	(void)sigemptyset(&none);
	return sigprocmask(SIG_SETMASK, &none, NULL) < 0 ? -errno : 0;
}

static int forbid_gain(void)
{
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ? -errno : 0;
}

static int forbid_inspection(void)
{
	const struct rlimit none = {0};

	if (setrlimit(RLIMIT_CORE, &none) < 0)
		return -errno;
	return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 ? -errno : 0;
}

/*
 * Keeps, of the capabilities that there are, those that the work takes. Nothing is made (MKNOD) or given away (CHOWN).
 * Those for one step on some kernels are only permitted; base/capability.h makes them effective for that step.
 */
static int drop_capabilities(void)
{
	static const struct {
		cap_value_t value;
		cap_flag_value_t effective;
	} needed[] = {
		{CAP_SYS_ADMIN, CAP_SET},      /* mount, setns, device rules */
		{CAP_SYS_CHROOT, CAP_SET},     /* setns(2) to a mount namespace */
		{CAP_SYS_PTRACE, CAP_SET},     /* /proc/<pid>/{ns,root} of a process that has more capabilities than are left here */
		{CAP_DAC_OVERRIDE, CAP_SET},   /* an image whose files belong to another user (user namespaces) */
		{CAP_SETUID, CAP_SET},         /* ctr-gpu-driverd becomes nobody */
		{CAP_SETGID, CAP_SET},
		{CAP_KILL, CAP_SET},           /* and is stopped when it hangs */
		{CAP_NET_ADMIN, CAP_CLEAR},    /* to query and attach device programs before Linux 6.9 */
		{CAP_SYS_RESOURCE, CAP_CLEAR}, /* to load them before Linux 5.11, where RLIMIT_MEMLOCK is small */
		{CAP_SYSLOG, CAP_CLEAR},       /* to read them where net.core.bpf_jit_harden is 2 */
	};
	cap_t old = cap_get_proc();
	cap_t kept = cap_init();
	int result = 0;

	for (size_t i = 0; old && kept && i < sizeof(needed) / sizeof(needed[0]); i++) {
		cap_flag_value_t held = CAP_CLEAR;

		(void)cap_get_flag(old, needed[i].value, CAP_PERMITTED, &held);
		if (held == CAP_SET && (cap_set_flag(kept, CAP_PERMITTED, 1, &needed[i].value, CAP_SET) < 0 ||
					cap_set_flag(kept, CAP_EFFECTIVE, 1, &needed[i].value, needed[i].effective) < 0))
			result = -errno;
	}
	if (!old || !kept)
		result = -ENOMEM;
	if (!result && cap_set_proc(kept) < 0)
		result = -errno;
	(void)cap_free(old);
	(void)cap_free(kept);
	return result;
}

int sanitise(const char **ret_step)
{
	static const struct {
		int (*take)(void);
		const char *what;
	} steps[] = {
		{clear_environment, "clear the environment"},
		{close_descriptors, "close inherited descriptors"},
		{leave_directory, "leave the working directory"},
		{reset_signals, "reset the signals"},
		{forbid_gain, "set no_new_privs"},
		{drop_capabilities, "drop capabilities"},
		/* Last, because a change of capabilities may put the old value back (commit_creds() in kernel/cred.c). */
		{forbid_inspection, "forbid core files and debuggers"},
	};

	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		int result = steps[i].take();

		if (result) {
			*ret_step = steps[i].what;
			return result;
		}
	}
	return 0;
}
