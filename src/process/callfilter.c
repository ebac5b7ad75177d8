/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A process that handles a hostile image's files needs no other program or process, no network, no kernel module, no
 * keys. The filter is written down as the kernel takes it, since libseccomp takes 0.25 ms to make and load one
 * of this size, an eighth of a start. Each call has a bit in a word of 32, whatever the architecture's numbers are.
 */

#include "process/callfilter.h"

#include <asm/termbits.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/bpf.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"

/* Sanitizers make calls of their own. */
#if defined(__has_feature)
#define HAS_SANITIZER __has_feature(address_sanitizer)
#elif defined(__SANITIZE_ADDRESS__)
#define HAS_SANITIZER 1
#else
#define HAS_SANITIZER 0
#endif

#if HAS_SANITIZER
#elif defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#endif

#ifdef ARCHITECTURE

/* Calls that newer architectures lack stand for those that they have instead. */
#ifndef SYS_open
#define SYS_open SYS_openat
#define SYS_stat SYS_newfstatat
#define SYS_lstat SYS_newfstatat
#define SYS_access SYS_faccessat
#define SYS_readlink SYS_readlinkat
#define SYS_mkdir SYS_mkdirat
#define SYS_rmdir SYS_unlinkat
#define SYS_unlink SYS_unlinkat
#define SYS_rename SYS_renameat
#define SYS_dup2 SYS_dup3
#define SYS_time SYS_gettimeofday
#define SYS_poll SYS_ppoll
#endif

/* clang-format off */
/* With a word W, so that a macro can say for each call what it adds to that word. */
#define CALLS(X, W) \
	/* files */ \
	X(W, read) X(W, readv) X(W, pread64) X(W, write) X(W, writev) X(W, pwrite64) X(W, lseek) X(W, close) \
	X(W, close_range) X(W, open) X(W, openat) X(W, openat2) X(W, fstat) X(W, stat) X(W, lstat) \
	X(W, newfstatat) X(W, statx) X(W, access) X(W, faccessat) X(W, faccessat2) X(W, readlink) \
	X(W, readlinkat) X(W, getdents64) X(W, statfs) X(W, fstatfs) X(W, getcwd) X(W, chdir) X(W, fchdir) \
	X(W, umask) X(W, dup) X(W, dup2) X(W, dup3) X(W, flock) X(W, fsync) \
	/* and what is made and replaced */ \
	X(W, mkdir) X(W, mkdirat) X(W, rmdir) X(W, unlink) X(W, unlinkat) X(W, symlinkat) X(W, rename) \
	X(W, renameat) X(W, renameat2) X(W, linkat) X(W, ftruncate) X(W, fchmod) X(W, fchown) \
	/* mounts; mount itself stands below */ \
	X(W, open_tree) X(W, move_mount) X(W, fsopen) X(W, fsconfig) X(W, fsmount) X(W, mount_setattr) \
	X(W, umount2) \
	/* rights, which only become less */ \
	X(W, setfsuid) X(W, setfsgid) X(W, capget) X(W, capset) \
	/* remarks; sockets can only be of this machine, below */ \
	X(W, connect) X(W, sendto) X(W, poll) X(W, ppoll) \
	/* itself */ \
	X(W, mmap) X(W, munmap) X(W, mprotect) X(W, mremap) X(W, madvise) X(W, brk) X(W, getpid) X(W, gettid) \
	X(W, getppid) X(W, getuid) X(W, geteuid) X(W, getgid) X(W, getegid) X(W, uname) X(W, sysinfo) \
	X(W, getrandom) X(W, futex) X(W, clock_gettime) X(W, clock_nanosleep) X(W, nanosleep) X(W, gettimeofday) \
	X(W, time) X(W, rt_sigaction) X(W, rt_sigprocmask) X(W, rt_sigreturn) X(W, sigaltstack) \
	X(W, restart_syscall) X(W, exit) X(W, exit_group)

enum { WORDS = 15 }; /* calls up to number 479 */
#define BIT(W, name) | (SYS_##name / 32 == (W) ? 1U << SYS_##name % 32 : 0)
#define FITS(W, name) &&SYS_##name < 32 * WORDS
_Static_assert(1 CALLS(FITS, 0), "there is a word for every call");

#define STATEMENT(code, value) {(code), 0, 0, (uint32_t)(value)}
#define JUMP(code, value, yes, no) {BPF_JMP | (code) | BPF_K, (yes), (no), (uint32_t)(value)}
#define LOAD(field) STATEMENT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
/* Of an argument the lower half, which is all that these calls look at. */
#define LOAD_ARGUMENT(number) LOAD(args[number])
#define ANSWER(action) STATEMENT(BPF_RET | BPF_K, action)
#define ALLOW ANSWER(SECCOMP_RET_ALLOW)

/* Whether bit X of a word is set; X counts from 0 to 31. */
#define TEST_BIT(yes, no) STATEMENT(BPF_ALU | BPF_RSH | BPF_X, 0), JUMP(BPF_JSET, 1, yes, no)

/* A call that is allowed with this argument. The number of the call is loaded before and after each of these. */
#define WITH_VALUE(call, argument, value) \
	JUMP(BPF_JEQ, SYS_##call, 0, 4), LOAD_ARGUMENT(argument), JUMP(BPF_JEQ, value, 0, 1), ALLOW, LOAD(nr)
/* The same with those from 0 to 31 whose bits are set. */
#define WITH_ONE_OF(call, argument, bits) \
	JUMP(BPF_JEQ, SYS_##call, 0, 8), LOAD_ARGUMENT(argument), JUMP(BPF_JGE, 32, 5, 0), \
		STATEMENT(BPF_MISC | BPF_TAX, 0), STATEMENT(BPF_LD | BPF_IMM, bits), TEST_BIT(0, 1), ALLOW, LOAD(nr)
/* The same with any of these flags. */
#define WITH_FLAG(call, argument, flags) \
	JUMP(BPF_JEQ, SYS_##call, 0, 4), LOAD_ARGUMENT(argument), JUMP(BPF_JSET, flags, 0, 1), ALLOW, LOAD(nr)

/* Word @W, if the call is one of its 32; it is tested behind the last. */
#define WORD(W) JUMP(BPF_JGE, 32 * ((W) + 1), 2, 0), STATEMENT(BPF_LD | BPF_IMM, 0 CALLS(BIT, W)), \
		STATEMENT(BPF_JMP | BPF_JA, 3 * (WORDS - 1 - (W)) + 5)

#define BPF_COMMANDS \
	(1U << BPF_PROG_LOAD | 1U << BPF_PROG_ATTACH | 1U << BPF_PROG_DETACH | 1U << BPF_PROG_GET_FD_BY_ID | \
	 1U << BPF_OBJ_GET_INFO_BY_FD | 1U << BPF_PROG_QUERY)
/* Nothing that has the kernel send signals (F_SETOWN), and no leases. */
#define FCNTL_COMMANDS \
	(1U << F_DUPFD | 1U << F_GETFD | 1U << F_SETFD | 1U << F_GETFL | 1U << F_SETFL | 1U << F_GETLK | \
	 1U << F_SETLK | 1U << F_SETLKW)

static const struct sock_filter table[] = {
	LOAD(arch),
	JUMP(BPF_JEQ, ARCHITECTURE, 1, 0),
	ANSWER(SECCOMP_RET_KILL_PROCESS),
	/* First what needs no look at its arguments: the kernel tries out every call as far as to an index. */
	LOAD(nr), STATEMENT(BPF_ALU | BPF_AND | BPF_K, 31), STATEMENT(BPF_MISC | BPF_TAX, 0), LOAD(nr),
	WORD(0), WORD(1), WORD(2), WORD(3), WORD(4), WORD(5), WORD(6), WORD(7),
	WORD(8), WORD(9), WORD(10), WORD(11), WORD(12), WORD(13), WORD(14),
	/* No call any more: a tracer, which sees calls first, has answered it. */
	JUMP(BPF_JEQ, -1, 0, 1), ALLOW,
	/* Of x32, which has the same architecture. */
	JUMP(BPF_JGE, 0x40000000, 0, 1), ANSWER(SECCOMP_RET_KILL_PROCESS),
	ANSWER(SECCOMP_RET_ERRNO | EPERM),
	TEST_BIT(0, 1), ALLOW, LOAD(nr),
	WITH_ONE_OF(bpf, 0, BPF_COMMANDS),
	WITH_ONE_OF(fcntl, 1, FCNTL_COMMANDS),
	WITH_VALUE(fcntl, 1, F_DUPFD_CLOEXEC),
	WITH_ONE_OF(prctl, 0, 1U << PR_SET_PDEATHSIG | 1U << PR_GET_PDEATHSIG),
	WITH_ONE_OF(socket, 0, 1U << AF_UNIX),
	WITH_VALUE(ioctl, 1, TCGETS), /* isatty(3) */
	WITH_VALUE(prlimit64, 0, 0),
	WITH_VALUE(setns, 1, CLONE_NEWNS),
	WITH_VALUE(setns, 1, CLONE_NEWUSER),
	/* No file system but the stage's tmpfs, which has these flags, and no change of one that is mounted. */
	WITH_FLAG(mount, 3, MS_BIND | MS_MOVE | MS_PRIVATE | MS_SLAVE),
	WITH_VALUE(mount, 3, MS_NOSUID | MS_NODEV | MS_NOEXEC),
	/* A signal that ends the work is sent on to ourselves. */
	JUMP(BPF_JEQ, SYS_kill, 0, 3), LOAD_ARGUMENT(0), JUMP(BPF_JEQ, 0, 0, 1), ALLOW,
	ANSWER(SECCOMP_RET_ERRNO | EPERM),
};
/* clang-format on */

/* Where our own number is filled in: the third from the end. */
enum { OWN_PID = ARRAY_SIZE(table) - 3 };

static int callfilter_try(const struct sock_fprog *program)
{
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, program) < 0 ? -errno : 0;
}

int callfilter_load(void)
{
	static bool loaded;
	struct sock_filter filter[ARRAY_SIZE(table)];
	const struct sock_fprog program = {ARRAY_SIZE(filter), filter};
	int r;

	if (loaded)
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(filter); i++)
		filter[i] = table[i];
	filter[OWN_PID].k = (uint32_t)getpid();
	r = callfilter_try(&program);
	/* Who may not administrate has to give up what set-user-ID programs would give. */
	if (r == -EACCES && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0)
		r = callfilter_try(&program);
	loaded = r == 0;
	return r;
}

#else

int callfilter_load(void)
{
	return -ENOSYS;
}

#endif
