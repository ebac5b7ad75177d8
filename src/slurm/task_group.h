/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The cgroup of a step's tasks, whose device rules Slurm has made already when a plugin is called. With cgroup version
 * 1 a task is in it by then. With version 2 it still is where slurmstepd is, beside that cgroup, with the rules of the
 * whole job.
 */

struct task_group {
	int home;      /* directory of the cgroup that the caller comes from; -1: it was not moved */
	int tasks;     /* and of the one in which another was made for it */
	char name[32]; /* of this */
};

#define TASK_GROUP_NONE ((struct task_group){-1, -1, ""})

/**
 * task_group_enter() - have the rules of the step's tasks hold for this process
 * @step: directory of the step's cgroup
 * @ret:  TASK_GROUP_NONE before, to be left in any case
 *
 * Return: 0, also where that is so already; negative errno.
 */
int task_group_enter(int step, struct task_group *ret);
void task_group_leave(struct task_group *group);
#define _cleanup_task_group_ __attribute__((cleanup(task_group_leave)))
