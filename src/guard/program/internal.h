/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the files of ctr-gpu-guard have of each other. */

#include <stdbool.h>

#include "base/err.h"
#include "base/str.h"

/*
 * What the BPF programs take for granted of the kernel and of the driver, held against the types (BTF) that both bring
 * along. Another release of the driver may use other names, so what differs is refused and named.
 */

enum { BTF_TARGETS_MAX = 32 };

/* What programs are attached to, a function or an event, among the types. */
struct btf_target {
	const char *name;
	unsigned id;
	bool of_module; /* among the driver's types, which is a module; else among the kernel's */
};

/** What a kernel has that not all have, and where it has what programs are attached to. */
struct btf_facts {
	bool has_compat_hook;   /* 32-bit callers have a security hook of their own */
	bool has_rmdir_event;   /* the end of a cgroup is announced */
	bool has_preempt_calls; /* BPF programs can forbid that they are preempted */
	bool has_fault_event;   /* the kernel's own page faults are announced */
	bool has_bpf_lsm;       /* BPF programs can be a security module */
	size_t target_count;
	struct btf_target targets[BTF_TARGETS_MAX];
};

/** Return: the function or event of this name among the types; NULL if btf_check_check() has found none. */
const struct btf_target *btf_target_find(const struct btf_facts *facts, const char *name);

/** Return: a descriptor of the driver's types, if it is a module, for targets that are of it; negative errno. */
int btf_target_open_module(void);

/**
 * btf_check_check() - compare the running kernel and driver with what the programs were written for
 * @ret_missing: a line for each thing that is missing or different; none if all is as it must be
 *
 * Return: 0; negative errno.
 */
int btf_check_check(struct btf_facts *ret, struct strv *ret_missing);

/* The BPF programs, loaded, attached and pinned, where they stay when this program ends. */

/** Whether they are there, of this version of the guard; @ret_other: they are, of another version. */
bool attach_is_done(bool *ret_other);

/**
 * attach_do() - load them, unless they are there
 * @verbose: with the verifier's words on standard error
 *
 * Those of another version are replaced, and choices kept. Return: 0; CTR_GPU_E_GUARD with @err set if this kernel or
 * driver cannot be guarded; CTR_GPU_E_NO_PERMISSION; negative errno.
 */
int attach_do(bool verbose, struct err *err);

/** Takes them away; nothing is guarded any more. Return: 0, also without any; negative errno with @err set. */
int attach_undo(struct err *err);

/*
 * Failures of system calls that say nothing of what the kernel can do. What it cannot do is kept until the next boot
 * (check_cache_put()), so no other failure may be taken for that.
 */

/** Whether the same may work later, with this kernel and driver; @r is a negative errno. */
bool errno_is_temporary(int r);
