/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the files of ctr-gpu-guard have of each other. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "guard/choice.h"

/*
 * The guard's BPF programs, which this program has in it, as libbpf has them. They are looked up by name, so that the
 * build needs no generated header, and no tool that a distribution may lack.
 */

struct bpf_link;
struct bpf_map;
struct bpf_object;

enum { PROGRAMS_MAX = 64 };

struct guard {
	struct bpf_object *obj;
	struct {
		struct bpf_map *choices, *present;
	} maps;
	unsigned load;                        /* the number of this load */
	struct bpf_link *links[PROGRAMS_MAX]; /* in the order of the programs; NULL where one is not attached */
};

/** Return: what differs where the programs differ. */
uint64_t programs_hash(void);

/** Return: the programs, not loaded, to be released with programs_close(); NULL with errno set. */
struct guard *programs_open(void);

/** Programs that were attached stay so if their links are pinned. Takes NULL. */
void programs_close(struct guard *guard);

/**
 * Sets a constant of the programs before they are loaded.
 * @size: must be the size of the constant; -EINVAL otherwise
 * Return: 0; -ENOENT if no program has it.
 */
int programs_set(struct guard *guard, const char *name, const void *value, size_t size);

/** Leaves a program out of what is loaded, or not. Return: 0; -ENOENT if there is none of that name. */
int programs_choose(struct guard *guard, const char *name, bool wanted);

/** Attaches those that were loaded. Return: 0; negative errno, with some of them attached. */
int programs_attach(struct guard *guard);

/*
 * What the BPF programs take for granted of the kernel and of the driver, held against the types (BTF) that both bring
 * along. Another release of the driver may use other names, so what differs is refused and named.
 */

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

/* Choices of cgroups that are gone, where the kernel did not announce their end. */

/** Removes them. Return: 0, with how many there were and are; negative errno with @err set. */
int expire(const struct choices *choices, size_t *ret_removed, size_t *ret_left, struct err *err);

/*
 * Failures of system calls that say nothing of what the kernel can do. What it cannot do is kept until the next boot
 * (check_cache_put()), so no other failure may be taken for that.
 */

/** Whether the same may work later, with this kernel and driver; @r is a negative errno. */
bool errno_is_temporary(int r);
