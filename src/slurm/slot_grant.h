/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a step gets by vCUDA: the manager's grant for the GPUs of its slots, with as much of their memory and time as
 * the slots are. A batch script has its job's grant, which the job's steps have with it, since Slurm gives them the
 * same slots. It ends with the slurmstepd for which it was asked.
 */

#include <stdbool.h>
#include <sys/types.h>

#include "ctr-gpu.h"
#include "slurm/step.h"

struct slot_grant {
	struct ctr_gpu_context *context; /* its message is set */
	const struct ctr_gpu_host *host;
	const struct slurm_step *step;
	const char *devices; /* list for ctr_gpu_request_set_devices(): the GPUs of the granted slots */
	size_t gpus, slots;  /* how many */
	pid_t stepd;
};

/**
 * slot_grant_ask() - have it made, unless it is there
 * @ret_directory: of its socket, owned by the caller
 *
 * Return: 0; CTR_GPU_E_*; negative errno.
 */
int slot_grant_ask(const struct slot_grant *grant, char **ret_directory);
