/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The client sends code to a compiler that was not written against hostile input, so the server is taken for lost from
 * its first byte on: another user than anybody's, no capability, no way to gain any, no network, and the system calls
 * that were seen on a machine with a GPU when contexts are made, code is compiled and kernels run, with what the C
 * library needs for threads. What is not on the list fails with EPERM and does not kill: libraries try things and do
 * without.
 */

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <libgen.h>
#include <linux/capability.h>
#include <linux/sched.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/landlock.h"
#include "base/paths.h"
#include "model/adapter.h"
#include "process/seccomp.h"
#include "vcuda/server/server.h"

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

/* ---- which files a server may open: what the driver needs, and the nodes of the granted GPUs ---- */

/*
 * Landlock (Documentation/userspace-api/landlock.rst): it needs no rights, no namespaces, and nothing from the manager.
 * The list is what NVIDIA's driver and the C library open on machines with a GPU, at their start and later. What is not
 * on it fails with EACCES, which libraries take as they take a file that is missing.
 */

enum { SANDBOX_NAME = 300, SANDBOX_INFORMATION = 4096 };

#define SANDBOX_READ (LANDLOCK_READ_FILE | LANDLOCK_READ_DIR)
#define SANDBOX_DEVICE (LANDLOCK_READ_FILE | LANDLOCK_WRITE_FILE | LANDLOCK_IOCTL_DEV)
#define SANDBOX_GPUS PATH_PROC_NVIDIA "/gpus"

/* Those that exist. */
static const struct {
	const char *path;
	uint64_t rights;
} sandbox_paths[] = {
	/* The driver's libraries, which it loads when they are needed, and what they need. */
	{"/lib", SANDBOX_READ},
	{"/lib64", SANDBOX_READ},
	{"/usr/lib", SANDBOX_READ},
	{"/usr/lib64", SANDBOX_READ},
	{"/usr/local/lib", SANDBOX_READ},
	{"/usr/share/nvidia", SANDBOX_READ},
	{"/etc/ld.so.cache", SANDBOX_READ},
	{"/etc/localtime", SANDBOX_READ},
	{"/etc/nvidia", SANDBOX_READ},
	/* What the kernel says of the machine. Of processes, itself alone. */
	{"/proc/self", SANDBOX_READ},
	/* The driver names its threads, and takes that for a failure of its start if it cannot. */
	{"/proc/self/task", SANDBOX_READ | LANDLOCK_WRITE_FILE | LANDLOCK_TRUNCATE},
	{"/proc/driver", SANDBOX_READ},
	{"/proc/sys/vm", SANDBOX_READ},
	{"/proc/cpuinfo", SANDBOX_READ},
	{"/proc/devices", SANDBOX_READ},
	{"/proc/meminfo", SANDBOX_READ},
	{"/proc/modules", SANDBOX_READ},
	{"/proc/stat", SANDBOX_READ},
	{"/proc/version", SANDBOX_READ},
	{"/sys/bus/pci", SANDBOX_READ},
	{"/sys/devices", SANDBOX_READ},
	{"/sys/kernel/mm", SANDBOX_READ},
	{"/sys/module", SANDBOX_READ},
	/* Nodes that all GPUs have in common. */
	{"/dev/null", SANDBOX_DEVICE},
	{"/dev/zero", SANDBOX_DEVICE},
	{"/dev/urandom", SANDBOX_READ},
	{PATH_DXG, SANDBOX_DEVICE},
	{PATH_NVIDIACTL, SANDBOX_DEVICE},
	{PATH_NVIDIA_UVM, SANDBOX_DEVICE},
	{PATH_NVIDIA_UVM_TOOLS, SANDBOX_DEVICE},
};

/* A rule holds for an inode. One of procfs is made anew once nobody has it open, so this one stays open. */
static int sandbox_paths_allow(int rules, const char *path, uint64_t rights)
{
	_cleanup_close_ int fd = open(path, O_PATH | O_CLOEXEC);
	struct landlock_beneath rule = {.parent = fd};
	struct stat st;

	/* Most of the nodes that there might be are not there. */
	if (fd < 0 || fstat(fd, &st) < 0)
		return 0;
	rule.allowed = rights & landlock_rights();
	if (!S_ISDIR(st.st_mode))
		rule.allowed &= ~(uint64_t)LANDLOCK_READ_DIR;
	if (syscall(SYS_landlock_add_rule, rules, LANDLOCK_BENEATH, &rule, 0) < 0)
		return -errno;
	if (strncmp(path, "/proc/self", strlen("/proc/self")) == 0)
		(void)steal_fd(&fd);
	return 0;
}

/* The driver's libraries are beside its first one, or beside what that is a link to. */
static int sandbox_paths_allow_library(int rules, const char *library)
{
	char *real = library[0] == '/' ? realpath(library, NULL) : NULL, name[SANDBOX_NAME];
	int r = 0;

	if (library[0] == '/') {
		(void)snprintf(name, sizeof(name), "%s", library);
		r = sandbox_paths_allow(rules, dirname(name), SANDBOX_READ);
	}
	if (real && r == 0)
		r = sandbox_paths_allow(rules, dirname(real), SANDBOX_READ);
	free(real);
	return r;
}

/* ---- the nodes of the granted GPUs, and of those that they may be moved to ---- */

/* Return: the number of the node; -1: the kernel does not say. */
static int sandbox_paths_minor(const char *address)
{
	_cleanup_free_ char *text = NULL;
	char path[SANDBOX_NAME];
	const char *line;
	int number;

	(void)snprintf(path, sizeof(path), SANDBOX_GPUS "/%s/information", address);
	if (fd_read_kernel_file(AT_FDCWD, path, SANDBOX_INFORMATION, &text) < 0)
		return -1;
	line = strstr(text, "Device Minor:");
	return line && sscanf(line, "Device Minor: %d", &number) == 1 ? number : -1;
}

static bool sandbox_paths_is_granted(const struct start *start, const char *address)
{
	/* 0 is a GPU whose place is not known. */
	uint32_t place = pci_address_number(address);

	for (uint32_t i = 0; i < start->reach; i++)
		if (place && start->gpus[i].place == place)
			return true;
	return false;
}

/* Where a GPU's place on the bus is not known, it may be any. */
static bool sandbox_paths_knows_gpus(const struct start *start)
{
	for (uint32_t i = 0; i < start->reach; i++)
		if (start->gpus[i].place == 0)
			return false;
	return access(SANDBOX_GPUS, F_OK) == 0;
}

static int sandbox_paths_allow_node(int rules, int number)
{
	char path[SANDBOX_NAME];

	(void)snprintf(path, sizeof(path), PATH_NVIDIA_GPU "%d", number);
	return sandbox_paths_allow(rules, path, SANDBOX_DEVICE);
}

static int sandbox_paths_allow_every_node(int rules)
{
	enum { NODES = 256 };
	int r = 0;

	for (int i = 0; i < NODES && r == 0; i++)
		r = sandbox_paths_allow_node(rules, i);
	return r;
}

static int sandbox_paths_allow_granted(int rules, const struct start *start)
{
	DIR *directory = opendir(SANDBOX_GPUS);
	const struct dirent *entry;
	int r = 0;

	while (directory && r == 0 && (entry = readdir(directory))) {
		const int number =
			sandbox_paths_is_granted(start, entry->d_name) ? sandbox_paths_minor(entry->d_name) : -1;

		if (number >= 0)
			r = sandbox_paths_allow_node(rules, number);
	}
	if (directory)
		(void)closedir(directory);
	return r;
}

static int sandbox_paths_close(const struct start *start)
{
	_cleanup_close_ int rules = -1;
	int r = 0;

	if (landlock_version() < 1)
		return 0;
	rules = landlock_open();
	if (rules < 0)
		return rules;
	for (size_t i = 0; i < ARRAY_SIZE(sandbox_paths) && r == 0; i++)
		r = sandbox_paths_allow(rules, sandbox_paths[i].path, sandbox_paths[i].rights);
	if (r == 0)
		r = sandbox_paths_allow_library(rules, start->library);
	if (r == 0)
		r = sandbox_paths_knows_gpus(start) ? sandbox_paths_allow_granted(rules, start)
						    : sandbox_paths_allow_every_node(rules);
	if (r == 0 && syscall(SYS_landlock_restrict_self, rules, 0) < 0)
		r = -errno;
	return r;
}

/* ---- one thing after the other ---- */

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
	return start->flags & START_NO_PATHS ? 0 : sandbox_paths_close(start);
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
