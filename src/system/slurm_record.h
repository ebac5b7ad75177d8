/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Which GPUs a step of a Slurm job was granted, as root left it for ctr-gpu-runtime, which may be run by the job's
 * user: the environment is that user's. A file a step, below a directory that root alone may write.
 */

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { SLURM_NAME_MAX = 32 };

/*
 * As Slurm names them: "12", and "0", "batch" or "interactive". A component of a heterogeneous step is "0+1" where its
 * cgroup is named, and "0" in variables and for plugins.
 */
struct slurm_step {
	char job[SLURM_NAME_MAX], step[SLURM_NAME_MAX];
};

/** Return: 0; -EINVAL for what cannot be such names. */
int slurm_step_set(const char *job, const char *step, struct slurm_step *ret);

/**
 * slurm_step_find() - the step whose cgroup a process is in
 * @membership: text of /proc/PID/cgroup
 *
 * Return: 0; -ENOENT if it is in none.
 */
int slurm_step_find(const char *membership, struct slurm_step *ret);

/** As slurm_step_find(), of the caller. Return: 0; -ENOENT; another negative errno. */
int slurm_step_find_own(struct slurm_step *ret);

/** Return: how many bytes of a cgroup's path lead to a step's cgroup; 0: none of it is one. */
size_t slurm_step_path(const char *path);

struct slurm_record {
	uid_t uid;   /* the job's user */
	bool held;   /* by the guard: processes in the step's cgroup see no other adapters */
	bool vcuda;  /* it has them by vCUDA, by the grant whose socket is in PATH_SLURM_STEPS "/vcuda" of its tasks */
	pid_t stepd; /* the slurmstepd of the step; 0: not known */
	char *devices; /* list for ctr_gpu_request_set_devices() */
};

void slurm_record_clear(struct slurm_record *record);
#define _cleanup_record_ __attribute__((cleanup(slurm_record_clear)))

/** Return: 0 or negative errno. */
int slurm_record_write(const struct slurm_step *step, const struct slurm_record *record);

/**
 * slurm_record_remove() - remove what was left for a step and its components or, if @step has no step, for all of its
 * job
 * @stepd: what another slurmstepd is known to have written, of another component, stays; 0: all goes
 */
void slurm_record_remove(const struct slurm_step *step, pid_t stepd);

/**
 * slurm_record_find() - what was left for the step that the caller is part of
 * @environment: of a container: by its SLURM_JOB_ID and SLURM_STEP_ID a step of the caller's user is found, where no
 *               cgroup says more; NULL-terminated; NULL
 *
 * Return: 0; -ENOENT if it is part of none, or nothing was left for it; another negative errno if what was left for the
 * step of its cgroup cannot be read.
 */
int slurm_record_find(const char *const *environment, struct slurm_record *ret);
