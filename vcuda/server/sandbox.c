/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The client sends code to a compiler that was not written against hostile input, so the server is taken for lost from
 * its first byte on: another user than anybody's, no capability, no way to gain any, no network, and the system calls
 * that were seen on a machine with a GPU when contexts are made, code is compiled and kernels run, with what the C
 * library needs for threads. What is not on the list fails with EPERM and does not kill: libraries try things and do
 * without.
 */

#include "vcuda/server/server.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/sched.h>
#include <sched.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "process/seccomp.h"

enum { NOBODY = 65534, DESCRIPTORS = 4096 };

/* clang-format off */
#define STEADY(X, W) \
	X(W, read) X(W, readv) X(W, pread64) X(W, write) X(W, writev) X(W, lseek) X(W, close) \
	X(W, fstat) X(W, stat) X(W, lstat) X(W, newfstatat) X(W, statx) X(W, access) X(W, faccessat) \
	X(W, faccessat2) X(W, readlink) X(W, readlinkat) X(W, getdents64) X(W, getcwd) X(W, fadvise64) \
	X(W, dup) X(W, dup2) X(W, dup3) \
	X(W, openat) X(W, open) X(W, ioctl) \
	/* waiting, and page-locked memory on its way to the client */ \
	X(W, poll) X(W, ppoll) X(W, epoll_create1) X(W, epoll_ctl) X(W, epoll_wait) X(W, epoll_pwait) X(W, eventfd2) \
	X(W, pipe2) X(W, recvfrom) X(W, recvmsg) X(W, sendto) X(W, sendmsg) X(W, memfd_create) X(W, ftruncate) \
	/* memory */ \
	X(W, mmap) X(W, munmap) X(W, mprotect) X(W, mremap) X(W, madvise) X(W, brk) X(W, mincore) X(W, membarrier) \
	X(W, msync) X(W, mlock) X(W, munlock) X(W, mbind) X(W, get_mempolicy) X(W, set_mempolicy) \
	/* threads */ \
	X(W, futex) X(W, set_robust_list) X(W, rseq) X(W, set_tid_address) X(W, sched_yield) \
	X(W, sched_getaffinity) X(W, sched_setaffinity) X(W, sched_getparam) X(W, sched_getscheduler) \
	X(W, sched_get_priority_max) X(W, sched_get_priority_min) X(W, getcpu) X(W, arch_prctl) \
	/* itself */ \
	X(W, getpid) X(W, gettid) X(W, getppid) X(W, getuid) X(W, geteuid) X(W, getgid) X(W, getegid) \
	X(W, getresuid) X(W, getresgid) X(W, getrlimit) X(W, getrusage) X(W, uname) X(W, sysinfo) X(W, getrandom) \
	X(W, exit) X(W, exit_group) \
	/* clocks and signals */ \
	X(W, clock_gettime) X(W, clock_getres) X(W, clock_nanosleep) X(W, nanosleep) X(W, gettimeofday) X(W, time) \
	X(W, times) X(W, rt_sigaction) X(W, rt_sigprocmask) X(W, rt_sigreturn) X(W, sigaltstack) X(W, restart_syscall)

/* The driver's start looks for a daemon of its own and makes things of its own. */
#define BEGINNING(X, W) STEADY(X, W) \
	X(W, socket) X(W, socketpair) X(W, connect) X(W, bind) X(W, listen) X(W, accept4) X(W, getsockname) \
	X(W, getsockopt) X(W, setsockopt) X(W, shutdown) X(W, mkdir) X(W, mkdirat) X(W, symlink) X(W, symlinkat) \
	X(W, unlink) X(W, unlinkat) X(W, chmod) X(W, fchmod) X(W, statfs) X(W, fstatfs) X(W, select) X(W, pselect6) \
	X(W, flock) X(W, prctl) X(W, seccomp) X(W, sched_setscheduler) X(W, setpriority)

#ifndef SYS_symlink
#define SYS_symlink SYS_symlinkat
#define SYS_chmod SYS_fchmodat
#endif
_Static_assert(1 BEGINNING(SECCOMP_FITS, 0), "there is a word for every call");

/* fcntl(2) can have the kernel send signals, and hold locks and leases. Processes are not made, threads are. */
#define RULES \
	WITH_ONE_OF(fcntl, 1, 1U << F_DUPFD | 1U << F_GETFD | 1U << F_SETFD | 1U << F_GETFL), \
	WITH_VALUE(fcntl, 1, F_DUPFD_CLOEXEC), \
	WITH_VALUE(fcntl, 1, F_ADD_SEALS), \
	WITH_VALUE(fcntl, 1, F_GET_SEALS), \
	WITH_VALUE_BUT(fcntl, 1, F_SETFL, 2, O_ASYNC), \
	WITH_THREADS, \
	WITH_NULL(prlimit64, 2), \
	WITH_VALUE(prctl, 0, PR_SET_NAME), \
	WITH_VALUE(prctl, 0, PR_GET_NAME), \
	WITH_VALUE(tgkill, 0, SECCOMP_OWN_PID), \
	WITHOUT(clone3), \
	WITHOUT(openat2), \
	REFUSE(EPERM)

static const struct sock_filter beginning[] = {SECCOMP_BEGIN(BEGINNING), RULES};
static const struct sock_filter steady[] = {SECCOMP_BEGIN(STEADY), RULES};
/* clang-format on */

static int server_sandbox_leave_namespaces(const struct start *start)
{
	(void)start;
	/* Without the right to, the others must do. */
	if (unshare(CLONE_NEWNET | CLONE_NEWIPC) < 0 && errno != EPERM && errno != EINVAL && errno != ENOSPC)
		return -errno;
	return 0;
}

static int server_sandbox_set_limits(const struct start *start)
{
	const struct rlimit none = {0, 0}, descriptors = {DESCRIPTORS, DESCRIPTORS};

	(void)start;
	if (setrlimit(RLIMIT_CORE, &none) < 0)
		return -errno;
	return setrlimit(RLIMIT_NOFILE, &descriptors) < 0 && errno != EPERM ? -errno : 0;
}

static int server_sandbox_become(const struct start *start)
{
	const uid_t uid = start->uid ? start->uid : NOBODY;
	const gid_t gid = start->gid ? start->gid : NOBODY;

	if (geteuid() != 0)
		return 0;
	if (setgroups(0, NULL) < 0 || setresgid(gid, gid, gid) < 0 || setresuid(uid, uid, uid) < 0)
		return -errno;
	return 0;
}

static int server_sandbox_drop_capabilities(const struct start *start)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	const struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {0};

	(void)start;
	return syscall(SYS_capset, &header, none) < 0 ? -errno : 0;
}

static int server_sandbox_forbid_new_rights(const struct start *start)
{
	(void)start;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return -errno;
	return 0;
}

static int server_sandbox_close_paths(const struct start *start)
{
	return start->flags & START_NO_PATHS ? 0 : landlock_rules_close(start);
}

static int server_sandbox_filter(const struct start *start)
{
	return start->flags & START_NO_FILTER ? 0 : seccomp_install(beginning, ARRAY_SIZE(beginning));
}

int server_sandbox_enter(const struct start *start, const char **ret_step)
{
	static const struct {
		int (*take)(const struct start *start);
		const char *name;
	} steps[] = {
		{server_sandbox_leave_namespaces, "leaving the network"},
		{server_sandbox_set_limits, "setting limits"},
		{server_sandbox_become, "becoming another user"},
		{server_sandbox_drop_capabilities, "dropping capabilities"},
		{server_sandbox_forbid_new_rights, "forbidding new rights"},
		{server_sandbox_close_paths, "limiting the files that can be opened"},
		{server_sandbox_filter, "loading the first filter"},
	};
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(steps) && r == 0; i++) {
		*ret_step = steps[i].name;
		r = steps[i].take(start);
	}
	if (r == 0)
		*ret_step = NULL;
	return r;
}

int server_sandbox_close(const struct start *start)
{
	return start->flags & START_NO_FILTER ? 0 : seccomp_install_everywhere(steady, ARRAY_SIZE(steady));
}
