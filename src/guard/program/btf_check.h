/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the BPF programs take for granted of the kernel and of the driver, held against the types (BTF) that both bring
 * along. Another release of the driver may use other names, so what differs is refused and named.
 */

#include <stdbool.h>

#include "base/str.h"

/** What a kernel has that not all have. */
struct btf_facts {
	bool has_compat_hook;   /* 32-bit callers have a security hook of their own */
	bool has_rmdir_event;   /* the end of a cgroup is announced */
	bool has_preempt_calls; /* BPF programs can forbid that they are preempted */
	bool has_fault_event;   /* the kernel's own page faults are announced */
	bool has_bpf_lsm;       /* BPF programs can be a security module */
};

/**
 * btf_check_check() - compare the running kernel and driver with what the programs were written for
 * @ret_missing: a line for each thing that is missing or different; none if all is as it must be
 *
 * Return: 0; negative errno.
 */
int btf_check_check(struct btf_facts *ret, struct strv *ret_missing);
