/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The GPUs of this node as Slurm counts them, and what a step of a job gets of them. Slurm knows a GPU by a file whose
 * name ends in its number, and tells a step the numbers of the GPUs that it was granted.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "ctr-gpu.h"
#include "system/slurm_record.h"

#define SLURM_NODES PATH_RUN "/slurm"

/* Where a step has the directory of its grant mounted, and a container finds it. */
#define SLURM_VCUDA PATH_SLURM_STEPS "/vcuda"

enum { SLURM_GPUS_MAX = 512, SLURM_TYPE_MAX = 64 };

/* A GPU, or a slot of one: a part of its memory and time, by vCUDA. */

struct slurm_gpu {
	char type[SLURM_TYPE_MAX];
	char *file;
	bool made; /* the file is a node of ours */
	bool slot;
	bool shared;     /* the adapter is behind /dev/dxg, as others are */
	size_t position; /* of the adapter in the host */
	unsigned number; /* among its vendor's GPUs, as the vendor's library counts them */
};

struct slurm_gpus {
	struct slurm_gpu list[SLURM_GPUS_MAX];
	size_t count;
};

/**
 * slurm_gpus_list() - the GPUs that can be used
 *
 * By the settings NVIDIA's are given in slots.
 *
 * Return: 0; negative errno; @ret, empty before, is released in any case.
 */
int slurm_gpus_list(const struct ctr_gpu_context *context, const struct ctr_gpu_host *host, struct slurm_gpus *ret);
void slurm_gpus_clear(struct slurm_gpus *gpus);
#define _cleanup_gpus_ __attribute__((cleanup(slurm_gpus_clear)))

/**
 * Removes what is left of a job that has ended. Slurm leaves some cgroups where a slurmstepd was killed or two ended at
 * once, and with them the guard's choices, which end with their cgroups. A cgroup with a process in it stays.
 */
void slurm_group_remove_job(const struct slurm_step *job);

/**
 * slurm_step_begin() - let a step have the GPUs that it was granted, and no others
 * @context: its message is set
 * @host:    NULL: it has no GPU
 * @told:    as a plugin is told its name; its cgroup's counts, where it has one
 * @numbers: of the granted GPUs, as slurmstepd has them in SLURM_STEP_GPUS; "" for none
 * @stepd:   its slurmstepd: with it what it has by vCUDA ends
 * @file:    gets what the plugin has to do, a line each: "NAME=value" sets a variable, "NAME" unsets it, "NAME+=value"
 *           puts the value in front of a list with colons; "mount SOURCE TARGET" is for the task alone
 *
 * The caller is root in the step's cgroup. Where GPUs share one device, the guard holds the choice until that cgroup
 * is gone. It may be done again, for each task.
 *
 * Return: 0, with a warning if the choice is not held and need not be; CTR_GPU_E_GUARD; CTR_GPU_E_UNKNOWN_DEVICE if
 * it does not follow from the numbers which GPUs are meant; negative errno.
 */
int slurm_step_begin(struct ctr_gpu_context *context, const struct ctr_gpu_host *host, const struct slurm_step *told,
		     uid_t uid, const char *numbers, pid_t stepd, FILE *file);
