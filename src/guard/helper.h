/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Whether this machine can hold a choice, and having ctr-gpu-guard see to it. The hook is static and without libbpf, so
 * what takes that is a program of its own, which is run where the guard is not loaded yet.
 */

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/** Whether the programs are loaded, as far as the caller may see. */
bool helper_is_loaded(void);

/**
 * helper_check() - whether the guard is loaded, or could be, and would hold
 * @ret_obstacle: why not, a clause, owned by the caller; NULL if so
 *
 * Loads nothing; root's answer is kept until the next boot. Return: 0 or -ENOMEM.
 */
int helper_check(char **ret_obstacle);

/** Loads the guard, unless it is loaded. Return: 0; CTR_GPU_E_GUARD or negative errno with @err set. */
int helper_load(struct err *err);

/** The same; choices of cgroups that are gone are removed besides. */
int helper_refresh(struct err *err);

/*
 * Whether root has switched the tracing of functions off. The guard's programs can be attached all the same, but the
 * kernel calls none of them, not even those that were attached before.
 */

/** For sentences. */
#define TRACING_OFF "the tracing of functions is switched off (sysctl kernel.ftrace_enabled)"

/** A kernel without such a switch has it on. */
bool tracing_is_off(void);

/*
 * Whether the kernel preempts itself. The guard's programs may then be skipped: while a task is preempted inside one,
 * the kernel does not run that one for other tasks on the same CPU. A task without a share of the CPU stays there as
 * long as others like, so copies would not help. Probes, which are not skipped so, do the same once more
 * (guard/program/attach_programs.c), but cannot refuse a call; a security module's program can, where the kernel has
 * BPF among those. So honest programs lose nothing, and racing ones may get answers.
 */

/** What a racing program gets on such a kernel; for sentences. */
#define PREEMPT_EFFECT "a program that races with the guard may get some answers of another adapter"

/**
 * preempt_classify() - the same by what the kernel says of itself
 * @version: as uname(2) has it
 * @modes:   /sys/kernel/debug/sched/preempt, the mode in parentheses; NULL: it cannot be read
 * @ret_why: a clause, owned by the caller; NULL if the kernel does not. What is not known does.
 *
 * Return: 0 or -ENOMEM.
 */
int preempt_classify(const char *version, const char *modes, char **ret_why);

/** preempt_classify() of the running kernel. Takes a debugfs of its own to look at, mounted nowhere. */
int preempt_check(char **ret_why);

/*
 * What is really attached: the pins of a directory that the kernel knows as links, by its own numbers of them and of
 * their programs. A pin alone proves nothing.
 */

/* A symlink beside the pins, to how many links a load has made, and to its number. */
#define LINKS_NOTE "links"

enum { LINKS_MAX = 64 };

struct links {
	size_t count;
	unsigned ids[LINKS_MAX], programs[LINKS_MAX];
};

/** Reads them from a directory of pins. Return: 0 or negative errno. */
int links_read(int pins, struct links *ret);

/** Whether those are all that the load has made. */
bool links_are_complete(int pins, const struct links *links);

/** Return: the number of the load that made the pins; 0: none. */
unsigned links_load(int pins);

/** Whether the guard is attached, as far as the caller may see. */
bool links_are_attached(void);
