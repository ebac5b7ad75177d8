/* SPDX-License-Identifier: Apache-2.0 */

#include "process/phase.h"

#include <asm/termbits.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "process/privilege.h"
#include "process/seccomp.h"

/* Newer than the headers of distributions; src/root/statmount.h has it, too. */
#ifndef SYS_statmount
#define SYS_statmount 457
#endif

/* ---- filters of system calls ---- */

static int seccomp_fill(struct sock_filter filter[SECCOMP_MAX], const struct sock_filter *table, size_t count)
{
	if (count > SECCOMP_MAX)
		return -E2BIG;
	memcpy(filter, table, count * sizeof(*filter));
	for (size_t i = 0; i < count; i++)
		if (filter[i].code == (BPF_JMP | BPF_JEQ | BPF_K) && filter[i].k == SECCOMP_OWN_PID)
			filter[i].k = (uint32_t)getpid();
	return 0;
}

int seccomp_install_everywhere(const struct sock_filter *table, size_t count)
{
	struct sock_filter filter[SECCOMP_MAX];
	const struct sock_fprog program = {(unsigned short)count, filter};
	int r = seccomp_fill(filter, table, count);
	long thread;

	if (r < 0)
		return r;
	thread = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program);
	return thread < 0 ? -errno : thread > 0 ? -EBUSY : 0;
}

int seccomp_install(const struct sock_filter *table, size_t count)
{
	struct sock_filter filter[SECCOMP_MAX];
	const struct sock_fprog program = {(unsigned short)count, filter};
	int r = seccomp_fill(filter, table, count);

	if (r < 0)
		return r;
	/* Not seccomp(2): systemd's list @system-service lacks it, and a unit may be limited to that list. */
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0 ? -errno : 0;
}

/*
 * What giving GPUs to a container takes. A process that handles a hostile image's files needs no other program or
 * process, no network, no kernel module, no keys.
 */

#if !SECCOMP_SANITIZED && defined(SECCOMP_ARCHITECTURE)

/* clang-format off */
#define CALLS(X, W) \
	/* files */ \
	X(W, read) X(W, readv) X(W, pread64) X(W, write) X(W, writev) X(W, pwrite64) X(W, lseek) X(W, close) \
	X(W, close_range) X(W, open) X(W, openat) X(W, openat2) X(W, fstat) X(W, stat) X(W, lstat) \
	X(W, newfstatat) X(W, statx) X(W, access) X(W, faccessat) X(W, faccessat2) X(W, readlink) \
	X(W, readlinkat) X(W, getdents64) X(W, statfs) X(W, fstatfs) X(W, getcwd) X(W, chdir) X(W, fchdir) \
	X(W, umask) X(W, dup) X(W, dup2) X(W, dup3) X(W, flock) X(W, fsync) \
	/* creating and replacing them */ \
	X(W, mkdir) X(W, mkdirat) X(W, rmdir) X(W, unlink) X(W, unlinkat) X(W, symlinkat) X(W, rename) \
	X(W, renameat) X(W, renameat2) X(W, linkat) X(W, ftruncate) X(W, fchmod) X(W, fchown) \
	X(W, utimensat) \
	/* mounts; mount itself stands below */ \
	X(W, open_tree) X(W, move_mount) X(W, fsopen) X(W, fsconfig) X(W, fsmount) X(W, mount_setattr) \
	X(W, umount2) X(W, statmount) \
	/* rights, which can only be given up */ \
	X(W, setfsuid) X(W, setfsgid) X(W, capget) X(W, capset) \
	/* log messages; below, sockets are limited to this machine's */ \
	X(W, connect) X(W, sendto) X(W, poll) X(W, ppoll) \
	/* itself */ \
	X(W, mmap) X(W, munmap) X(W, mprotect) X(W, mremap) X(W, madvise) X(W, brk) X(W, getpid) X(W, gettid) \
	X(W, getppid) X(W, getuid) X(W, geteuid) X(W, getgid) X(W, getegid) X(W, uname) X(W, sysinfo) \
	X(W, getrandom) X(W, futex) X(W, clock_gettime) X(W, clock_nanosleep) X(W, nanosleep) X(W, gettimeofday) \
	X(W, time) X(W, rt_sigaction) X(W, rt_sigprocmask) X(W, rt_sigreturn) X(W, sigaltstack) \
	X(W, restart_syscall) X(W, exit) X(W, exit_group)

_Static_assert(1 CALLS(SECCOMP_FITS, 0), "there is a word for every call");

#define BPF_COMMANDS \
	(1U << BPF_PROG_LOAD | 1U << BPF_PROG_ATTACH | 1U << BPF_PROG_DETACH | 1U << BPF_PROG_GET_FD_BY_ID | \
	 1U << BPF_OBJ_GET_INFO_BY_FD | 1U << BPF_PROG_QUERY | 1U << BPF_OBJ_GET | 1U << BPF_MAP_LOOKUP_ELEM | \
	 1U << BPF_MAP_UPDATE_ELEM | 1U << BPF_MAP_DELETE_ELEM)
/* Not F_SETOWN, by which the kernel sends signals, and no leases. */
#define FCNTL_COMMANDS \
	(1U << F_DUPFD | 1U << F_GETFD | 1U << F_SETFD | 1U << F_GETFL | 1U << F_SETFL | 1U << F_GETLK | \
	 1U << F_SETLK | 1U << F_SETLKW)

static const struct sock_filter giving[] = {
	SECCOMP_BEGIN(CALLS),
	WITH_ONE_OF(bpf, 0, BPF_COMMANDS),
	WITH_ONE_OF(fcntl, 1, FCNTL_COMMANDS),
	WITH_VALUE(fcntl, 1, F_DUPFD_CLOEXEC),
	WITH_ONE_OF(prctl, 0, 1U << PR_SET_PDEATHSIG | 1U << PR_GET_PDEATHSIG),
	WITH_ONE_OF(socket, 0, 1U << AF_UNIX),
	WITH_VALUE(ioctl, 1, TCGETS), /* isatty(3) */
	WITH_VALUE(prlimit64, 0, 0),
	WITH_VALUE(setns, 1, CLONE_NEWNS),
	WITH_VALUE(setns, 1, CLONE_NEWUSER),
	WITH_VALUE(unshare, 0, CLONE_NEWNS),
	/* No file system but the stage's tmpfs, which has these flags, and no change of one that is mounted. */
	WITH_FLAG(mount, 3, MS_BIND | MS_MOVE | MS_PRIVATE | MS_SLAVE),
	WITH_VALUE(mount, 3, MS_NOSUID | MS_NODEV | MS_NOEXEC),
	/* A signal that ends the work is sent on to ourselves. */
	WITH_VALUE(kill, 0, SECCOMP_OWN_PID),
	REFUSE(EPERM),
};
/* clang-format on */

/* It cannot be undone. Return: 0; -ENOSYS for an architecture without a table; negative errno. */
static int seccomp_load(void)
{
	static bool loaded;
	int r;

	if (loaded)
		return 0;
	r = seccomp_install(giving, ARRAY_SIZE(giving));
	/* Without CAP_SYS_ADMIN, a filter needs no_new_privs (seccomp(2)). */
	if (r == -EACCES && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0)
		r = seccomp_install(giving, ARRAY_SIZE(giving));
	loaded = r == 0;
	return r;
}

#else

static int seccomp_load(void)
{
	return -ENOSYS;
}

#endif

/* ---- phases ---- */

#define BEGIN (1U << PHASE_BEGIN)
#define GIVE (1U << PHASE_GIVE)
#define EDIT (1U << PHASE_EDIT)

/*
 * The phases in which a capability is permitted, and those in which it is effective, too. A hook has given up CHOWN and
 * FOWNER when it begins; "ctr-gpu configure" has them. MKNOD is in none: no node is made.
 */
static const struct {
	int value;
	unsigned permitted, effective;
} capabilities[] = {
	{CAP_DAC_OVERRIDE, BEGIN | GIVE | EDIT, BEGIN | GIVE | EDIT}, /* files of another user (user namespaces) */
	{CAP_SETUID, BEGIN | GIVE | EDIT, BEGIN | GIVE | EDIT},       /* driverd; files of another owner of the root */
	{CAP_SETGID, BEGIN | GIVE | EDIT, BEGIN | GIVE | EDIT},
	{CAP_KILL, BEGIN, BEGIN},               /* driverd is stopped when it hangs */
	{CAP_SYS_ADMIN, BEGIN | GIVE, GIVE},    /* mount, setns, device rules */
	{CAP_SYS_CHROOT, BEGIN | GIVE, GIVE},   /* setns(2) to a mount namespace */
	{CAP_SYS_PTRACE, BEGIN | GIVE, GIVE},   /* /proc/<pid>/{ns,root} of one with more capabilities */
	{CAP_CHOWN, GIVE | EDIT, GIVE | EDIT},  /* files that are replaced keep their owner */
	{CAP_FOWNER, GIVE | EDIT, GIVE | EDIT}, /* and their mode */
	{CAP_NET_ADMIN, BEGIN | GIVE, 0},       /* to query and attach device programs before Linux 6.9 */
	{CAP_SYS_RESOURCE, BEGIN | GIVE, 0},    /* to load them before Linux 5.11, where RLIMIT_MEMLOCK is small */
	{CAP_SYSLOG, BEGIN | GIVE, 0},          /* to read them where net.core.bpf_jit_harden is 2 */
};

/* Of this process. A signal handler may come here. */
static struct __user_cap_data_struct own[_LINUX_CAPABILITY_U32S_3];
static bool known;

/* Remembers what this process has just been given, so that the kernel need not be asked. */
static void capability_know(const struct __user_cap_data_struct words[_LINUX_CAPABILITY_U32S_3])
{
	memcpy(own, words, sizeof(own));
	known = true;
}

/* Forgets it: capabilities have changed, as on entering another user namespace. */
static void capability_forget(void)
{
	known = false;
}

/* A program that never called capability_know() may change them itself. Return: NULL with errno set. */
static const struct __user_cap_data_struct *capability_own(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};

	return known || syscall(SYS_capget, &header, own) == 0 ? own : NULL;
}

static int phase_set(enum phase phase)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct new[_LINUX_CAPABILITY_U32S_3] = {0};
	const struct __user_cap_data_struct *old = capability_own();

	if (!old)
		return -errno;
	for (size_t i = 0; i < ARRAY_SIZE(capabilities); i++) {
		const unsigned word = (unsigned)capabilities[i].value / 32, bit = 1U << capabilities[i].value % 32;

		if (!(capabilities[i].permitted >> phase & 1) || !(old[word].permitted & bit))
			continue;
		new[word].permitted |= bit;
		new[word].effective |= capabilities[i].effective >> phase & 1 ? bit : 0;
	}
	if (syscall(SYS_capset, &header, new) < 0)
		return -errno;
	capability_know(new);
	return 0;
}

int phase_limit(enum phase phase)
{
	capability_forget();
	return phase_set(phase);
}

int phase_enter(enum phase phase)
{
	int r = phase == PHASE_BEGIN ? 0 : seccomp_load();

	return r == -ENOMEM ? r : phase_set(phase);
}

/* ---- privilege ---- */

/* Sets or clears one effective flag. Return: whether the kernel did. */
static bool capability_turn(int value)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};

	own[value / 32].effective ^= 1U << value % 32;
	return syscall(SYS_capset, &header, own) == 0;
}

bool capability_is_effective(int value)
{
	return capability_own() && (own[value / 32].effective & 1U << value % 32);
}

int capability_raise(int value)
{
	if (value == CAPABILITY_NONE || capability_is_effective(value) ||
	    !(own[value / 32].permitted & 1U << value % 32))
		return CAPABILITY_NONE;
	return capability_turn(value) ? value : CAPABILITY_NONE;
}

void capability_lower(int *raised)
{
	if (*raised != CAPABILITY_NONE)
		(void)capability_turn(*raised);
	*raised = CAPABILITY_NONE;
}

int private_uid_draw(uid_t *ret)
{
	uint32_t drawn;

	if (getrandom(&drawn, sizeof(drawn), 0) != sizeof(drawn))
		return -EIO;
	*ret = PRIVATE_UID_FIRST + drawn % PRIVATE_UIDS;
	return 0;
}
