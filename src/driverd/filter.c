/* SPDX-License-Identifier: Apache-2.0 */

/*
 * An allow-list. What is not on it fails with EPERM and does not kill: libraries try things and do without. A filter of
 * the container engine or of a tracer outside stays in force, since the kernel takes the strictest verdict of all
 * filters.
 */

#include "driverd/filter.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/cleanup.h"

/*
 * Files: everything that reads. Writing reaches the socket and /dev/null; no other descriptor is open for it. No
 * descriptor can be sent or taken.
 */
static const int allowed[] = {
	SCMP_SYS(read),
	SCMP_SYS(readv),
	SCMP_SYS(pread64),
	SCMP_SYS(preadv),
	SCMP_SYS(write),
	SCMP_SYS(writev),
	SCMP_SYS(lseek),
	SCMP_SYS(close),
	SCMP_SYS(fstat),
	SCMP_SYS(stat),
	SCMP_SYS(lstat),
	SCMP_SYS(newfstatat),
	SCMP_SYS(statx),
	SCMP_SYS(access),
	SCMP_SYS(faccessat),
	SCMP_SYS(faccessat2),
	SCMP_SYS(readlink),
	SCMP_SYS(readlinkat),
	SCMP_SYS(getdents64),
	SCMP_SYS(statfs),
	SCMP_SYS(fstatfs),
	SCMP_SYS(getcwd),
	SCMP_SYS(dup),
	SCMP_SYS(dup2),
	SCMP_SYS(dup3),
	SCMP_SYS(fadvise64),
	/* waiting */
	SCMP_SYS(poll),
	SCMP_SYS(ppoll),
	SCMP_SYS(select),
	SCMP_SYS(pselect6),
	SCMP_SYS(epoll_create1),
	SCMP_SYS(epoll_ctl),
	SCMP_SYS(epoll_wait),
	SCMP_SYS(epoll_pwait),
	SCMP_SYS(eventfd2),
	SCMP_SYS(pipe2),
	/* memory */
	SCMP_SYS(mmap),
	SCMP_SYS(munmap),
	SCMP_SYS(mprotect),
	SCMP_SYS(mremap),
	SCMP_SYS(madvise),
	SCMP_SYS(brk),
	SCMP_SYS(mincore),
	SCMP_SYS(membarrier),
	/* threads */
	SCMP_SYS(futex),
	SCMP_SYS(set_robust_list),
	SCMP_SYS(rseq),
	SCMP_SYS(set_tid_address),
	SCMP_SYS(sched_yield),
	SCMP_SYS(sched_getaffinity),
	SCMP_SYS(sched_getparam),
	SCMP_SYS(sched_getscheduler),
	SCMP_SYS(sched_get_priority_max),
	SCMP_SYS(sched_get_priority_min),
	SCMP_SYS(getcpu),
	SCMP_SYS(arch_prctl),
	/* itself */
	SCMP_SYS(getpid),
	SCMP_SYS(gettid),
	SCMP_SYS(getppid),
	SCMP_SYS(getuid),
	SCMP_SYS(geteuid),
	SCMP_SYS(getgid),
	SCMP_SYS(getegid),
	SCMP_SYS(getresuid),
	SCMP_SYS(getresgid),
	SCMP_SYS(getrlimit),
	SCMP_SYS(getrusage),
	SCMP_SYS(uname),
	SCMP_SYS(sysinfo),
	SCMP_SYS(getrandom),
	SCMP_SYS(exit),
	SCMP_SYS(exit_group),
	/* clocks and signals */
	SCMP_SYS(clock_gettime),
	SCMP_SYS(clock_getres),
	SCMP_SYS(clock_nanosleep),
	SCMP_SYS(nanosleep),
	SCMP_SYS(gettimeofday),
	SCMP_SYS(time),
	SCMP_SYS(times),
	SCMP_SYS(rt_sigaction),
	SCMP_SYS(rt_sigprocmask),
	SCMP_SYS(rt_sigreturn),
	SCMP_SYS(rt_sigtimedwait),
	SCMP_SYS(rt_sigpending),
	SCMP_SYS(sigaltstack),
	SCMP_SYS(restart_syscall),
};

/* Namespaces belong to processes, and a thread with one of its own would be let out of this one's. */
#define CLONE_NAMESPACES \
	(CLONE_NEWNS | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP)

/* The kernel's uapi/asm-generic/ioctl.h: bits 8 to 15 say whose an ioctl is. */
enum {
	IOCTL_TYPE = 0xff00,
	IOCTL_DXG = 'G' << 8,
	IOCTL_NVIDIA = 'F' << 8,
	IOCTL_TCGETS = 0x5401, /* isatty(3) */
};

/*
 * Allowed with arguments: what reaches nobody else. fcntl(2) and ioctl(2) can have the kernel send signals to any
 * process of the same user (F_SETOWN, FIOSETOWN), type into a terminal, and hold locks and leases. An O_TMPFILE needs
 * an access mode for writing, which is refused.
 */
static const struct {
	int call;
	unsigned count;
	struct scmp_arg_cmp arguments[2];
} conditional[] = {
	{SCMP_SYS(open), 1, {{1, SCMP_CMP_MASKED_EQ, O_ACCMODE | O_CREAT | O_TRUNC, O_RDONLY}}},
	{SCMP_SYS(openat), 1, {{2, SCMP_CMP_MASKED_EQ, O_ACCMODE | O_CREAT | O_TRUNC, O_RDONLY}}},
	{SCMP_SYS(fcntl), 1, {{1, SCMP_CMP_EQ, F_DUPFD, 0}}},
	{SCMP_SYS(fcntl), 1, {{1, SCMP_CMP_EQ, F_DUPFD_CLOEXEC, 0}}},
	{SCMP_SYS(fcntl), 1, {{1, SCMP_CMP_EQ, F_GETFD, 0}}},
	{SCMP_SYS(fcntl), 1, {{1, SCMP_CMP_EQ, F_SETFD, 0}}},
	{SCMP_SYS(fcntl), 1, {{1, SCMP_CMP_EQ, F_GETFL, 0}}},
	{SCMP_SYS(fcntl), 2, {{1, SCMP_CMP_EQ, F_SETFL, 0}, {2, SCMP_CMP_MASKED_EQ, O_ASYNC, 0}}},
	{SCMP_SYS(ioctl), 1, {{1, SCMP_CMP_MASKED_EQ, IOCTL_TYPE, IOCTL_DXG}}},
	{SCMP_SYS(ioctl), 1, {{1, SCMP_CMP_MASKED_EQ, IOCTL_TYPE, IOCTL_NVIDIA}}},
	{SCMP_SYS(ioctl), 1, {{1, SCMP_CMP_EQ, IOCTL_TCGETS, 0}}},
	{SCMP_SYS(clone), 1, {{0, SCMP_CMP_MASKED_EQ, CLONE_THREAD | CLONE_NAMESPACES, CLONE_THREAD}}},
	{SCMP_SYS(prlimit64), 1, {{2, SCMP_CMP_EQ, 0, 0}}},
	{SCMP_SYS(prctl), 1, {{0, SCMP_CMP_EQ, PR_SET_NAME, 0}}},
	{SCMP_SYS(prctl), 1, {{0, SCMP_CMP_EQ, PR_GET_NAME, 0}}},
	{SCMP_SYS(prctl), 1, {{0, SCMP_CMP_EQ, PR_SET_VMA, 0}}},
};

/*
 * For libraries that talk to a device node, which they open for both. The process is nobody, and nothing is created,
 * made longer (RLIMIT_FSIZE) or cut off, so this reaches nodes that are everybody's and little else.
 */
static const struct scmp_arg_cmp open_for_both[] = {
	{1, SCMP_CMP_MASKED_EQ, O_ACCMODE | O_CREAT | O_TRUNC, O_RDWR},
	{2, SCMP_CMP_MASKED_EQ, O_ACCMODE | O_CREAT | O_TRUNC, O_RDWR},
};

/* The C library asks for these first and has an older way, whose arguments can be seen, when there are none. */
static const int absent[] = {SCMP_SYS(clone3), SCMP_SYS(openat2)};

/* Signals for itself, abort(3)'s among them. */
static int filter_allow_own_signals(scmp_filter_ctx filter)
{
	const struct scmp_arg_cmp itself = {0, SCMP_CMP_EQ, (scmp_datum_t)getpid(), 0};
	int r;

	r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(tgkill), 1, itself);
	return r < 0 ? r : seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(kill), 1, itself);
}

static int filter_add_rules(scmp_filter_ctx filter, bool opens_devices)
{
	int r = filter_allow_own_signals(filter);

	for (size_t i = 0; i < ARRAY_SIZE(allowed) && r == 0; i++)
		r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, allowed[i], 0);
	for (size_t i = 0; i < ARRAY_SIZE(conditional) && r == 0; i++)
		r = seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, conditional[i].call, conditional[i].count,
					   conditional[i].arguments);
	if (r == 0 && opens_devices)
		r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(open), 1, open_for_both[0]);
	if (r == 0 && opens_devices)
		r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(openat), 1, open_for_both[1]);
	for (size_t i = 0; i < ARRAY_SIZE(absent) && r == 0; i++)
		r = seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), absent[i], 0);
	return r;
}

int filter_load(bool opens_devices)
{
	scmp_filter_ctx filter;
	int r;

	/* Saves libseccomp nine system calls that find out what else the kernel's filters can do. */
	(void)seccomp_api_set(1);
	filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));
	if (!filter)
		return -ENOMEM;
	/* A binary tree instead of a list: the kernel tries the filter on every system call when it is loaded. */
	r = seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	if (r == 0)
		r = filter_add_rules(filter, opens_devices);
	if (r == 0)
		r = seccomp_load(filter);
	seccomp_release(filter);
	return r;
}
