/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The cgroups that Slurm makes for a job and its steps. */

#include "system/slurm_record.h"

/*
 * The cgroup of a step's tasks, whose device rules Slurm has made already when a plugin is called. With cgroup version
 * 1 a task is in it by then. With version 2 it still is where slurmstepd is, beside that cgroup, with the rules of the
 * whole job.
 */
struct slurm_group {
	int home;      /* directory of the cgroup that the caller comes from; -1: it was not moved */
	int tasks;     /* and of the one in which another was made for it */
	char name[32]; /* of this */
};

#define SLURM_GROUP_NONE ((struct slurm_group){-1, -1, ""})

/**
 * slurm_group_enter_tasks() - have the rules of the step's tasks hold for this process
 * @step: directory of the step's cgroup
 * @ret:  SLURM_GROUP_NONE before, to be left in any case
 *
 * Return: 0, also where that is so already; negative errno.
 */
int slurm_group_enter_tasks(int step, struct slurm_group *ret);
void slurm_group_leave(struct slurm_group *group);
#define _cleanup_slurm_group_ __attribute__((cleanup(slurm_group_leave)))

/**
 * Removes what is left of a job that has ended. Slurm leaves some cgroups where a slurmstepd was killed or two ended at
 * once, and with them the guard's choices, which end with their cgroups. A cgroup with a process in it stays.
 */
void slurm_group_remove_job(const struct slurm_step *job);
