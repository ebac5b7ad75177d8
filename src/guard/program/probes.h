/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The programs that do again what others may be left out of on a kernel that preempts itself (guard/preempt.h):
 * probes, where nothing can interrupt them, and the gate as a security module. Elsewhere they would only take time.
 */

#include "guard/program/btf_check.h"

struct bpf_object;

/** Whether this kernel preempts itself. */
bool probes_are_wanted(void);

/**
 * Whether a program may take the locks that a task's storage and a signal take where nothing can interrupt it: not
 * with PREEMPT_RT.
 */
bool probes_may_stay(void);

/** Leaves them out of what is loaded, unless they are wanted and the kernel has what they need. */
void probes_choose(struct bpf_object *programs, const struct btf_facts *facts, bool wanted);
