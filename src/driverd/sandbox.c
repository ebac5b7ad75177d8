/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A table of steps, in an order that matters: the parent's death is watched after the change of the uid, which resets
 * that (prctl(2), PR_SET_PDEATHSIG); descriptors are closed before anything is opened; the filter comes last, since it
 * forbids most of what stands before it.
 */

#include "driverd/internal.h"

#include <asm/termbits.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/sched.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/landlock.h"
#include "driverd/protocol.h"
#include "process/privilege.h"
#include "process/seccomp.h"

enum {
	NOBODY = 65534,
	CPU_SECONDS = 30,
	DESCRIPTORS = 64,
	THREADS = 64,
};

/* Address space: libdxcore takes a few MiB, NVML some hundred; what a leak or an absurd count may cost the host. */
#define ADDRESS_SPACE ((rlim_t)2 << 30)

/* The library gets none of the caller's descriptors; its standard streams lead to /dev/null. */
static int sandbox_close_descriptors(void)
{
	int null;

	/* By close_range(2), or one by one: before Linux 5.9, and where a container's filter does not know the call. */
	closefrom(DRIVERD_SOCKET + 1);
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null < 0)
		return -errno;
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (null != fd && dup2(null, fd) < 0)
			return -errno;
	if (null > STDERR_FILENO)
		(void)close(null);
	return 0;
}

/* Then /dev/tty cannot be opened. setsid(2) fails only for the leader of a group, which has no terminal. */
static int sandbox_leave_terminal(void)
{
	return setsid() < 0 && errno != EPERM ? -errno : 0;
}

static int sandbox_set_limits(void)
{
	static const struct {
		int resource;
		rlim_t limit;
	} limits[] = {
		{RLIMIT_CORE, 0},
		{RLIMIT_FSIZE, 0},
		{RLIMIT_NOFILE, DESCRIPTORS},
#ifndef __SANITIZE_ADDRESS__
		{RLIMIT_AS, ADDRESS_SPACE},
#endif
	};

	for (size_t i = 0; i < ARRAY_SIZE(limits); i++) {
		struct rlimit limit = {limits[i].limit, limits[i].limit};

		/* EPERM: the limit is lower already. */
		if (setrlimit((__rlimit_resource_t)limits[i].resource, &limit) < 0 && errno != EPERM)
			return -errno;
	}
	return 0;
}

/*
 * The kernel's timer, since a library may block SIGALRM; the filter forbids to change it. And so much of the
 * processor's time, which what has no deadline needs in the end, however little it does at once.
 */
static int sandbox_set_deadline(unsigned milliseconds)
{
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGKILL};
	struct itimerspec when = {
		.it_value = {.tv_sec = milliseconds / 1000, .tv_nsec = (long)(milliseconds % 1000) * 1000000},
	};
	const struct rlimit cpu = {CPU_SECONDS, CPU_SECONDS};
	timer_t timer;

	if (milliseconds == DRIVERD_NO_DEADLINE)
		return 0;
	if (timer_create(CLOCK_MONOTONIC, &event, &timer) < 0 || timer_settime(timer, 0, &when, NULL) < 0)
		return -errno;
	/* EPERM: the limit is lower already. */
	return setrlimit(RLIMIT_CPU, &cpu) < 0 && errno != EPERM ? -errno : 0;
}

/* Where a user is not mapped, or root lacks the right to become another user, the other steps must do. */
static bool sandbox_lacks_right(int error)
{
	return error == EPERM || error == EINVAL;
}

/* Return: whether it is that user now. */
static bool sandbox_switch_user(uid_t id)
{
	return setresgid(id, id, id) == 0 && setresuid(id, id, id) == 0;
}

/* Only this process's count, as only this process is that user. A hard limit that is lower already stays. */
static int sandbox_limit_threads(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NPROC, &limit) < 0)
		return -errno;
	if (limit.rlim_max > THREADS)
		limit.rlim_max = THREADS;
	limit.rlim_cur = limit.rlim_max;
	return setrlimit(RLIMIT_NPROC, &limit) < 0 ? -errno : 0;
}

/* A user namespace rarely maps a uid above 65534 (NOBODY), which is the second choice. */
static int sandbox_take_private_uid(void)
{
	uid_t id;
	int r;

	if (geteuid() != 0)
		return 0;
	r = private_uid_draw(&id);
	if (r < 0)
		return r;
	if (setgroups(0, NULL) < 0 && !sandbox_lacks_right(errno))
		return -errno;
	if (sandbox_switch_user(id))
		return sandbox_limit_threads();
	return sandbox_switch_user(NOBODY) || sandbox_lacks_right(errno) ? 0 : -errno;
}

/*
 * The bounding set stays as it is. It bounds what execve(2) gives, which no_new_privs makes nothing and the filter
 * refuses; emptying it takes forty system calls.
 */
static int sandbox_drop_capabilities(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	const struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {0};

	/* Without an inheritable or permitted capability none stays ambient (capabilities(7)). */
	return syscall(SYS_capset, &header, none) < 0 ? -errno : 0;
}

static int sandbox_forbid_new_rights(void)
{
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return -errno;
	return 0;
}

/* A parent that died before the signal was asked for has closed the socket. */
static int sandbox_die_with_parent(void)
{
	struct pollfd socket = {.fd = DRIVERD_SOCKET};

	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
		return -errno;
	if (poll(&socket, 1, 0) > 0)
		return -EPIPE;
	return 0;
}

/* The nodes of NVIDIA's driver, and /dev/null for messages that are thrown away. */
static bool sandbox_is_writable(const char *name)
{
	return strncmp(name, "nvidia", strlen("nvidia")) == 0 || strcmp(name, "null") == 0;
}

/* Landlock (Documentation/userspace-api/landlock.rst), where the kernel has it: other files are opened to be read. */
static int sandbox_limit_writing(void)
{
	const struct landlock_rules writing = {.files = LANDLOCK_WRITE_FILE};
	_cleanup_dir_ DIR *devices = fd_open_directory(AT_FDCWD, "/dev", 0);
	_cleanup_close_ int rules = -1;
	const struct dirent *entry;

	if (landlock_version() < 1)
		return 0;
	rules = (int)syscall(SYS_landlock_create_ruleset, &writing, sizeof(writing.files), 0);
	if (rules < 0)
		return -errno;
	while (devices && (entry = readdir(devices))) {
		struct landlock_beneath rule = {.allowed = LANDLOCK_WRITE_FILE, .parent = -1};
		_cleanup_close_ int fd = sandbox_is_writable(entry->d_name)
						 ? openat(directory_fd(devices), entry->d_name, O_PATH | O_CLOEXEC)
						 : -1;

		rule.parent = fd;
		if (fd >= 0 && syscall(SYS_landlock_add_rule, rules, LANDLOCK_BENEATH, &rule, 0) < 0)
			return -errno;
	}
	return syscall(SYS_landlock_restrict_self, rules, 0) < 0 ? -errno : 0;
}

/* ---- the system calls ---- */

/*
 * An allow-list. What is not on it fails with EPERM and does not kill: libraries try things and do without. A filter of
 * the container engine or of a tracer outside stays in force, since the kernel takes the strictest verdict of all
 * filters.
 */

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
	WITH_THREADS, \
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
 * changed (RLIMIT_FSIZE) or cut off. Which files these are, Landlock says (above); without it they are nodes and
 * FIFOs that anyone may write.
 */
static const struct sock_filter for_devices[] = {
	SECCOMP_BEGIN(CALLS),
	WITH_MASKED(openat, 2, OPEN_FLAGS, O_RDWR),
	WITH_MASKED(open, SECCOMP_OPEN_FLAGS, OPEN_FLAGS, O_RDWR),
	RULES,
};
/* clang-format on */

static int filter_load(bool opens_devices)
{
	return opens_devices ? seccomp_install(for_devices, ARRAY_SIZE(for_devices))
			     : seccomp_install(for_reading, ARRAY_SIZE(for_reading));
}

/* ---- all of it ---- */

int sandbox_enter(unsigned milliseconds, bool opens_devices, const char **ret_step)
{
	static const struct {
		int (*take)(void);
		const char *name;
	} steps[] = {
		{sandbox_close_descriptors, "closing descriptors"},
		{sandbox_leave_terminal, "leaving the terminal"},
		{sandbox_set_limits, "setting limits"},
		{sandbox_take_private_uid, "becoming a user of its own"},
		{sandbox_drop_capabilities, "dropping capabilities"},
		{sandbox_forbid_new_rights, "forbidding new rights"},
		{sandbox_die_with_parent, "following the parent"},
	};
	int r;

	*ret_step = "setting the deadline";
	r = sandbox_set_deadline(milliseconds);
	for (size_t i = 0; i < ARRAY_SIZE(steps) && r == 0; i++) {
		*ret_step = steps[i].name;
		r = steps[i].take();
	}
	if (r < 0)
		return r;
	*ret_step = "limiting what may be written";
	r = opens_devices ? sandbox_limit_writing() : 0;
	if (r < 0)
		return r;
	*ret_step = "loading the system call filter";
	return filter_load(opens_devices);
}
