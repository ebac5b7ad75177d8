/* SPDX-License-Identifier: Apache-2.0 */

/* What all parts of the process have in common: its log, what its loop waits for, and what it may do. */

#include "cluster/plugin.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/print.h"
#include "process/seccomp.h"

void plugin_log(const char *format, ...)
{
	_cleanup_free_ char *text = NULL;
	va_list arguments;

	va_start(arguments, format);
	if (vasprintf(&text, format, arguments) < 0)
		text = NULL;
	va_end(arguments);
	print_safe(stderr, "ctr-gpu-device-plugin: %s\n", text ? text : format);
}

/* ---- waits ---- */

void waits_add(struct waits *waits, int fd, short events)
{
	if (fd >= 0 && events && waits->count < WAITS_MAX)
		waits->list[waits->count++] = (struct pollfd){.fd = fd, .events = events};
}

void waits_until(struct waits *waits, int64_t when)
{
	if (when < waits->until)
		waits->until = when;
}

short waits_find(const struct waits *waits, int fd)
{
	for (size_t i = 0; i < waits->count; i++)
		if (waits->list[i].fd == fd)
			return waits->list[i].revents;
	return 0;
}

/* ---- filter ---- */

/*
 * What reads a peer's bytes can do no more than answer it. A call that is not on the list fails with EPERM.
 */

#if !SECCOMP_SANITIZED && defined(SECCOMP_ARCHITECTURE)

/* clang-format off */
#define CALLS(X, W) \
	X(W, read) X(W, write) X(W, writev) X(W, close) X(W, fstat) X(W, stat) X(W, lstat) X(W, newfstatat) \
	X(W, statx) X(W, unlink) X(W, unlinkat) X(W, inotify_add_watch) \
	/* sockets, which are of this machine (below) */ \
	X(W, bind) X(W, listen) X(W, accept4) X(W, connect) X(W, recvfrom) X(W, sendto) X(W, shutdown) X(W, poll) \
	X(W, ppoll) \
	/* itself */ \
	X(W, mmap) X(W, munmap) X(W, mprotect) X(W, mremap) X(W, madvise) X(W, brk) X(W, getpid) X(W, gettid) \
	X(W, getrandom) X(W, futex) X(W, clock_gettime) X(W, gettimeofday) X(W, time) X(W, rt_sigaction) \
	X(W, rt_sigprocmask) X(W, rt_sigreturn) X(W, restart_syscall) X(W, exit) X(W, exit_group)

_Static_assert(1 CALLS(SECCOMP_FITS, 0), "there is a word for every call");

static const struct sock_filter table[] = {
	SECCOMP_BEGIN(CALLS),
	WITH_ONE_OF(socket, 0, 1U << AF_UNIX),
	WITH_VALUE(tgkill, 0, SECCOMP_OWN_PID),
	REFUSE(EPERM),
};
/* clang-format on */

static int filter_install(void)
{
	return seccomp_install(table, ARRAY_SIZE(table));
}
#else
static int filter_install(void)
{
	return 0;
}
#endif

int filter_enter(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	const struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {0};
	const struct rlimit no_core = {0, 0};
	int r;

	(void)setrlimit(RLIMIT_CORE, &no_core);
	if (syscall(SYS_capset, &header, none) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	r = filter_install();
	/* A kernel without filters, or a container's filter that forbids another. */
	return r == -EINVAL || r == -EPERM || r == -ENOSYS ? 0 : r;
}
