/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The processes that this asks about are servers of vCUDA, which a container may have taken over: what they answer to
 * the driver's library here may be hostile to it. So it is the user that they are, and of root's rights it keeps two:
 * CAP_SYS_PTRACE, without which /proc does not open other processes' pipes, and CAP_DAC_READ_SEARCH, since the
 * directories of processes that cannot be dumped are root's. So it can read, and nothing more: it writes to what it has
 * and to the pipes of processes of this user, has no network, and neither traces, starts nor signals. (Landlock cannot
 * limit what it reads: the kernel keeps who is limited by it from the pipes of others.)
 */

#include "vcuda/checkpoint/rights.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "process/seccomp.h"

enum { DESCRIPTORS = 64 };

/* clang-format off */
#define CALLS(X, W) \
	X(W, read) X(W, readv) X(W, pread64) X(W, write) X(W, writev) X(W, lseek) X(W, close) X(W, fstat) X(W, stat) \
	X(W, lstat) X(W, newfstatat) X(W, statx) X(W, access) X(W, faccessat) X(W, faccessat2) X(W, readlink) \
	X(W, readlinkat) X(W, getdents64) X(W, openat) X(W, open) X(W, dup) X(W, pipe2) X(W, poll) X(W, ppoll) \
	X(W, ioctl) X(W, mmap) X(W, munmap) X(W, mprotect) X(W, madvise) X(W, brk) \
	X(W, futex) X(W, set_robust_list) X(W, rseq) X(W, set_tid_address) X(W, sched_yield) X(W, arch_prctl) \
	X(W, sched_getaffinity) X(W, sched_get_priority_max) X(W, sched_get_priority_min) \
	X(W, getpid) X(W, gettid) X(W, getuid) X(W, geteuid) X(W, getgid) X(W, getegid) X(W, getrlimit) X(W, uname) \
	X(W, sysinfo) X(W, getrandom) X(W, exit) X(W, exit_group) \
	X(W, clock_gettime) X(W, clock_getres) X(W, clock_nanosleep) X(W, nanosleep) X(W, gettimeofday) X(W, time) \
	X(W, rt_sigaction) X(W, rt_sigprocmask) X(W, rt_sigreturn) X(W, restart_syscall)

_Static_assert(1 CALLS(SECCOMP_FITS, 0), "there is a word for every call");

static const struct sock_filter calls[] = {
	SECCOMP_BEGIN(CALLS),
	WITH_ONE_OF(fcntl, 1, 1U << F_GETFD | 1U << F_SETFD | 1U << F_GETFL),
	WITH_NULL(prlimit64, 2),
	WITHOUT(clone3),
	REFUSE(EPERM),
};
/* clang-format on */

static int rights_limit_resources(void)
{
	const struct rlimit none = {0, 0}, descriptors = {DESCRIPTORS, DESCRIPTORS};

	if (setrlimit(RLIMIT_CORE, &none) < 0 || setrlimit(RLIMIT_FSIZE, &none) < 0 ||
	    setrlimit(RLIMIT_NOFILE, &descriptors) < 0)
		return -errno;
	return 0;
}

/* Keeps two of root's capabilities. The kernel takes all from who becomes another user, unless told otherwise. */
static int rights_keep_two(uid_t uid)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	const uint32_t kept = 1U << CAP_SYS_PTRACE | 1U << CAP_DAC_READ_SEARCH;
	const struct __user_cap_data_struct words[_LINUX_CAPABILITY_U32S_3] = {{.effective = kept, .permitted = kept}};

	if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) < 0 || setgroups(0, NULL) < 0 || setresgid(uid, uid, uid) < 0 ||
	    setresuid(uid, uid, uid) < 0 || syscall(SYS_capset, &header, words) < 0 ||
	    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return -errno;
	return 0;
}

int rights_give_up(uid_t uid)
{
	int r = rights_limit_resources();

	if (r == 0)
		r = rights_keep_two(uid);
	return r == 0 ? seccomp_install(calls, ARRAY_SIZE(calls)) : r;
}
