/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "system/slurm_record.h"

/*
 * The cgroups of a job. Slurm leaves some where a slurmstepd was killed or two ended at once, and with them the guard's
 * choices, which end with their cgroups.
 */

/** Removes what is left of a job that has ended. A cgroup with a process in it stays. */
void job_group_remove(const struct slurm_step *job);
