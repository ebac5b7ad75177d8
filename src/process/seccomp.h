/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Filters of system calls, written down as the kernel takes them (Documentation/userspace-api/seccomp_filter.rst),
 * since a library takes 0.25 ms and more to make one at run time. A filter is a list of calls that are allowed as they
 * are, and rules that look at arguments. Each call of the list has a bit in a word of 32, whatever the architecture's
 * numbers are.
 */

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>

#if defined(__x86_64__)
#define SECCOMP_ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define SECCOMP_ARCHITECTURE AUDIT_ARCH_AARCH64
#endif

/* Sanitizers make calls of their own, which no filter of ours has. */
#if defined(__has_feature)
#define SECCOMP_SANITIZED __has_feature(address_sanitizer)
#elif defined(__SANITIZE_ADDRESS__)
#define SECCOMP_SANITIZED 1
#else
#define SECCOMP_SANITIZED 0
#endif

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
#define SYS_select SYS_pselect6
#define SYS_epoll_wait SYS_epoll_pwait
#define SYS_arch_prctl SYS_getpid
#define SECCOMP_OPEN_FLAGS 2
#else
#define SECCOMP_OPEN_FLAGS 1
#endif

/* clang-format off */
enum { SECCOMP_WORDS = 15 }; /* calls up to number 479 */

/* A list is a macro LIST(X, W) of X(W, call)…, so that each call can say what it adds to word W. */
#define SECCOMP_BIT(W, name) | (SYS_##name / 32 == (W) ? 1U << SYS_##name % 32 : 0)
#define SECCOMP_FITS(W, name) && SYS_##name < 32 * SECCOMP_WORDS

#define STATEMENT(code, value) {(code), 0, 0, (uint32_t)(value)}
#define JUMP(code, value, yes, no) {BPF_JMP | (code) | BPF_K, (yes), (no), (uint32_t)(value)}
#define LOAD(field) STATEMENT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
/* Of an argument the lower half, which is all that most calls look at. */
#define LOAD_ARGUMENT(number) LOAD(args[number])
#define LOAD_UPPER(number) \
	STATEMENT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[number]) + sizeof(uint32_t))
#define ANSWER(action) STATEMENT(BPF_RET | BPF_K, action)
#define ALLOW ANSWER(SECCOMP_RET_ALLOW)
#define REFUSE(error) ANSWER(SECCOMP_RET_ERRNO | (error))

/* Whether bit X of a word is set; X counts from 0 to 31. */
#define TEST_BIT(yes, no) STATEMENT(BPF_ALU | BPF_RSH | BPF_X, 0), JUMP(BPF_JSET, 1, yes, no)

/* Word @W, if the call is one of its 32; it is tested behind the last. */
#define SECCOMP_WORD(LIST, W) \
	JUMP(BPF_JGE, 32 * ((W) + 1), 2, 0), STATEMENT(BPF_LD | BPF_IMM, 0 LIST(SECCOMP_BIT, W)), \
	STATEMENT(BPF_JMP | BPF_JA, 3 * (SECCOMP_WORDS - 1 - (W)) + 5)

/*
 * What every filter begins with. First comes what needs no look at its arguments: the kernel tries out every call as
 * far as to an index. Calls of another architecture kill.
 */
#define SECCOMP_BEGIN(LIST) \
	LOAD(arch), \
	JUMP(BPF_JEQ, SECCOMP_ARCHITECTURE, 1, 0), \
	ANSWER(SECCOMP_RET_KILL_PROCESS), \
	LOAD(nr), STATEMENT(BPF_ALU | BPF_AND | BPF_K, 31), STATEMENT(BPF_MISC | BPF_TAX, 0), LOAD(nr), \
	SECCOMP_WORD(LIST, 0), SECCOMP_WORD(LIST, 1), SECCOMP_WORD(LIST, 2), SECCOMP_WORD(LIST, 3), \
	SECCOMP_WORD(LIST, 4), SECCOMP_WORD(LIST, 5), SECCOMP_WORD(LIST, 6), SECCOMP_WORD(LIST, 7), \
	SECCOMP_WORD(LIST, 8), SECCOMP_WORD(LIST, 9), SECCOMP_WORD(LIST, 10), SECCOMP_WORD(LIST, 11), \
	SECCOMP_WORD(LIST, 12), SECCOMP_WORD(LIST, 13), SECCOMP_WORD(LIST, 14), \
	/* No call any more: a tracer, which sees calls first, has answered it. */ \
	JUMP(BPF_JEQ, -1, 0, 1), ALLOW, \
	/* Of x32, which has the same architecture. */ \
	JUMP(BPF_JGE, 0x40000000, 0, 1), ANSWER(SECCOMP_RET_KILL_PROCESS), \
	REFUSE(EPERM), \
	TEST_BIT(0, 1), ALLOW, LOAD(nr)

/*
 * Rules: a call is allowed with such an argument. The number of the call is loaded before and after each of them;
 * behind the last stands REFUSE(EPERM).
 */
#define WITH_VALUE(call, argument, value) \
	JUMP(BPF_JEQ, SYS_##call, 0, 4), LOAD_ARGUMENT(argument), JUMP(BPF_JEQ, value, 0, 1), ALLOW, LOAD(nr)
/* One from 0 to 31 whose bit is set. */
#define WITH_ONE_OF(call, argument, bits) \
	JUMP(BPF_JEQ, SYS_##call, 0, 8), LOAD_ARGUMENT(argument), JUMP(BPF_JGE, 32, 5, 0), \
		STATEMENT(BPF_MISC | BPF_TAX, 0), STATEMENT(BPF_LD | BPF_IMM, bits), TEST_BIT(0, 1), ALLOW, LOAD(nr)
/* Any of these flags. */
#define WITH_FLAG(call, argument, flags) \
	JUMP(BPF_JEQ, SYS_##call, 0, 4), LOAD_ARGUMENT(argument), JUMP(BPF_JSET, flags, 0, 1), ALLOW, LOAD(nr)
/* This value under a mask. */
#define WITH_MASKED(call, argument, mask, value) \
	JUMP(BPF_JEQ, SYS_##call, 0, 5), LOAD_ARGUMENT(argument), STATEMENT(BPF_ALU | BPF_AND | BPF_K, mask), \
		JUMP(BPF_JEQ, value, 0, 1), ALLOW, LOAD(nr)
/* This value, and in another argument none of these flags. */
#define WITH_VALUE_BUT(call, argument, value, other, flags) \
	JUMP(BPF_JEQ, SYS_##call, 0, 6), LOAD_ARGUMENT(argument), JUMP(BPF_JEQ, value, 0, 3), \
		LOAD_ARGUMENT(other), JUMP(BPF_JSET, flags, 1, 0), ALLOW, LOAD(nr)
/* A null pointer. */
#define WITH_NULL(call, argument) \
	JUMP(BPF_JEQ, SYS_##call, 0, 6), LOAD_ARGUMENT(argument), JUMP(BPF_JEQ, 0, 0, 3), \
		LOAD_UPPER(argument), JUMP(BPF_JEQ, 0, 0, 1), ALLOW, LOAD(nr)
/*
 * A thread of this process, in its namespaces: these belong to processes, and a thread with one of its own would be let
 * out of the process's.
 */
#define WITH_THREADS \
	WITH_MASKED(clone, 0, \
		    CLONE_THREAD | CLONE_NEWNS | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | \
			    CLONE_NEWUTS | CLONE_NEWCGROUP, \
		    CLONE_THREAD)
/* The kernel is said not to have it. */
#define WITHOUT(call) JUMP(BPF_JEQ, SYS_##call, 0, 1), REFUSE(ENOSYS)
/* clang-format on */

/* As the value of a rule: the number of the calling process, which is not known before. */
#define SECCOMP_OWN_PID 0xfffffffeU

enum { SECCOMP_MAX = 512 };

/**
 * seccomp_install() - from here on, make only the system calls that @table allows
 *
 * It cannot be undone. Return: 0; negative errno, of which -EACCES asks for no_new_privs.
 */
int seccomp_install(const struct sock_filter *table, size_t count);

/** The same for all threads of the process, those that a library has started among them. */
int seccomp_install_everywhere(const struct sock_filter *table, size_t count);
