/* SPDX-License-Identifier: Apache-2.0 */

/*
 * An allow-list. What is not on it fails with EPERM and does not kill: libraries try things and do without. A filter of
 * the container engine or of a tracer outside stays in force, since the kernel takes the strictest verdict of all
 * filters.
 */

#include "driverd/internal.h"

#include <asm/termbits.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include "base/cleanup.h"
#include "process/seccomp.h"

/*
 * Files: everything that reads. Writing reaches the socket and /dev/null; no other descriptor is open for it. No
 * descriptor can be sent or taken.
 */
/* clang-format off */
#define CALLS(X, W) \
	X(W, read) X(W, readv) X(W, pread64) X(W, preadv) X(W, write) X(W, writev) X(W, lseek) X(W, close) \
	X(W, fstat) X(W, stat) X(W, lstat) X(W, newfstatat) X(W, statx) X(W, access) X(W, faccessat) \
	X(W, faccessat2) X(W, readlink) X(W, readlinkat) X(W, getdents64) X(W, statfs) X(W, fstatfs) X(W, getcwd) \
	X(W, dup) X(W, dup2) X(W, dup3) X(W, fadvise64) \
	/* waiting */ \
	X(W, poll) X(W, ppoll) X(W, select) X(W, pselect6) X(W, epoll_create1) X(W, epoll_ctl) X(W, epoll_wait) \
	X(W, epoll_pwait) X(W, eventfd2) X(W, pipe2) \
	/* memory */ \
	X(W, munmap) X(W, mprotect) X(W, mremap) X(W, madvise) X(W, brk) X(W, mincore) X(W, membarrier) \
	/* threads */ \
	X(W, futex) X(W, set_robust_list) X(W, rseq) X(W, set_tid_address) X(W, sched_yield) \
	X(W, sched_getaffinity) X(W, sched_getparam) X(W, sched_getscheduler) X(W, sched_get_priority_max) \
	X(W, sched_get_priority_min) X(W, getcpu) X(W, arch_prctl) \
	/* itself */ \
	X(W, getpid) X(W, gettid) X(W, getppid) X(W, getuid) X(W, geteuid) X(W, getgid) X(W, getegid) \
	X(W, getresuid) X(W, getresgid) X(W, getrlimit) X(W, getrusage) X(W, uname) X(W, sysinfo) X(W, getrandom) \
	X(W, exit) X(W, exit_group) \
	/* clocks and signals */ \
	X(W, clock_gettime) X(W, clock_getres) X(W, clock_nanosleep) X(W, nanosleep) X(W, gettimeofday) X(W, time) \
	X(W, times) X(W, rt_sigaction) X(W, rt_sigprocmask) X(W, rt_sigreturn) X(W, rt_sigtimedwait) \
	X(W, rt_sigpending) X(W, sigaltstack) X(W, restart_syscall)
_Static_assert(1 CALLS(SECCOMP_FITS, 0), "there is a word for every call");

/* Namespaces belong to processes, and a thread with one of its own would be let out of this one's. */
#define CLONE_NAMESPACES \
	(CLONE_NEWNS | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP)

/* The kernel's uapi/asm-generic/ioctl.h: bits 8 to 15 are the type, which says whose an ioctl is. */
enum {
	IOCTL_TYPE = 0xff00,
	IOCTL_DXG = 'G' << 8,
	IOCTL_NVIDIA = 'F' << 8,
};

#define OPEN_FLAGS (O_ACCMODE | O_CREAT | O_TRUNC | (O_TMPFILE & ~O_DIRECTORY))

/*
 * Allowed with some arguments, which reach no other process. A mapping is private or anonymous: through a shared
 * mapping of a file, a library could write to files that every user may write, which RLIMIT_FSIZE does not stop.
 * fcntl(2) and ioctl(2) can have the kernel send signals to any process of the same user (F_SETOWN, FIOSETOWN), type
 * into a terminal, and hold locks and leases. The C library tries clone3 and openat2 first; if they are missing, it
 * uses the older calls, whose arguments a filter can read. It may send signals to itself, as abort(3) does.
 */
#define SHARED (MAP_SHARED | MAP_ANONYMOUS)
#define RULES \
	WITH_MASKED(mmap, 3, SHARED, 0), \
	WITH_MASKED(mmap, 3, SHARED, MAP_ANONYMOUS), \
	WITH_MASKED(mmap, 3, SHARED, MAP_SHARED | MAP_ANONYMOUS), \
	WITH_MASKED(openat, 2, OPEN_FLAGS, O_RDONLY), \
	WITH_MASKED(open, SECCOMP_OPEN_FLAGS, OPEN_FLAGS, O_RDONLY), \
	WITH_ONE_OF(fcntl, 1, 1U << F_DUPFD | 1U << F_GETFD | 1U << F_SETFD | 1U << F_GETFL), \
	WITH_VALUE(fcntl, 1, F_DUPFD_CLOEXEC), \
	WITH_VALUE_BUT(fcntl, 1, F_SETFL, 2, O_ASYNC), \
	WITH_MASKED(ioctl, 1, IOCTL_TYPE, IOCTL_DXG), \
	WITH_MASKED(ioctl, 1, IOCTL_TYPE, IOCTL_NVIDIA), \
	WITH_VALUE(ioctl, 1, TCGETS), /* isatty(3) */ \
	WITH_MASKED(clone, 0, CLONE_THREAD | CLONE_NAMESPACES, CLONE_THREAD), \
	WITH_NULL(prlimit64, 2), \
	WITH_VALUE(prctl, 0, PR_SET_NAME), \
	WITH_VALUE(prctl, 0, PR_GET_NAME), \
	WITH_VALUE(prctl, 0, PR_SET_VMA), \
	WITH_VALUE(tgkill, 0, SECCOMP_OWN_PID), \
	WITH_VALUE(kill, 0, SECCOMP_OWN_PID), \
	WITHOUT(clone3), \
	WITHOUT(openat2), \
	REFUSE(EPERM)

static const struct sock_filter for_reading[] = {SECCOMP_BEGIN(CALLS), RULES};

/*
 * For libraries that open a device node to read and write. The process is a user of its own, and nothing is created,
 * changed (RLIMIT_FSIZE) or cut off. Which files these are, Landlock says (sandbox.c); without it they are nodes and
 * FIFOs that anyone may write.
 */
static const struct sock_filter for_devices[] = {
	SECCOMP_BEGIN(CALLS),
	WITH_MASKED(openat, 2, OPEN_FLAGS, O_RDWR),
	WITH_MASKED(open, SECCOMP_OPEN_FLAGS, OPEN_FLAGS, O_RDWR),
	RULES,
};
/* clang-format on */

int filter_load(bool opens_devices)
{
	return opens_devices ? seccomp_install(for_devices, ARRAY_SIZE(for_devices))
			     : seccomp_install(for_reading, ARRAY_SIZE(for_reading));
}
