/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The BPF programs of cgroup version 2 that decide who may open a device, as data: read from the kernel, asked for
 * their answer, put behind a few instructions that allow more, and loaded again.
 */

#include <linux/bpf.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "devcgroup/devcgroup.h"

struct bpf_program {
	struct bpf_insn *insns;
	size_t count;
};

void bpf_program_clear(struct bpf_program *program);
#define _cleanup_bpf_program_ _cleanup_(bpf_program_clear)

/** Return: what bpf(2) does, with a negative errno for -1. All of @attr must be set: the kernel reads it whole. */
int bpf_call(enum bpf_cmd command, union bpf_attr *attr);

/**
 * bpf_program_read() - the instructions of a loaded program
 * @fd:  of the program
 * @ret: its instructions as they may be loaded again
 *
 * Return: 0; CTR_GPU_E_NO_CGROUP, with @err set, if the kernel does not show them or they refer to what cannot be
 * loaded again (maps, helper functions); negative errno with @err set.
 */
int bpf_program_read(int fd, struct bpf_program *ret, struct err *err);

enum bpf_decision {
	BPF_DENIES,
	BPF_ALLOWS,
	BPF_UNKNOWN, /* the program does something that we do not follow */
};

/** The answer of @program to one access, by following its instructions. */
enum bpf_decision bpf_program_evaluate(const struct bpf_program *program, const struct bpf_cgroup_dev_ctx *access);

/** Whether @program grants everything that @rule does; BPF_UNKNOWN if that cannot be decided. */
enum bpf_decision bpf_program_allows(const struct bpf_program *program, const struct devcgroup_rule *rule);

/**
 * bpf_program_extend() - a program that allows @rules and otherwise does what @program does
 *
 * Return: 0 or -ENOMEM.
 */
int bpf_program_extend(const struct bpf_program *program, const struct devcgroup_rule *rules, size_t count,
		       struct bpf_program *ret);

/**
 * bpf_program_strip() - what bpf_program_extend() was given for these rules
 *
 * What was put in front of that since stays.
 *
 * Return: 1 with @ret; 0 if the rules were not put in front of it, or the program was replaced since; -ENOMEM.
 */
int bpf_program_strip(const struct bpf_program *program, const struct devcgroup_rule *rules, size_t count,
		      struct bpf_program *ret);

/** The opposite of bpf_program_extend(): a program that denies what the rules allow. Return: 0 or -ENOMEM. */
int bpf_program_forbid(const struct bpf_program *program, const struct devcgroup_rule *rules, size_t count,
		       struct bpf_program *ret);

/** Loads a device program. Return: 0 and a descriptor; CTR_GPU_E_NO_CGROUP or negative errno with @err set. */
int bpf_program_load(const struct bpf_program *program, int *ret_fd, struct err *err);
