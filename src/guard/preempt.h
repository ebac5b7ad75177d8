/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Whether the kernel preempts itself. The guard's programs may then be skipped: while a task is preempted inside one,
 * the kernel does not run that one for other tasks on the same CPU. A task without a share of the CPU stays there as
 * long as others like, so copies would not help. Probes, which are not skipped so, do the same once more
 * (guard/program/probes.h), but cannot refuse a call; a security module's program can, where the kernel has BPF among
 * those. So honest programs lose nothing, and racing ones may get answers.
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
