/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Parts of GPUs (Multi-Instance GPU): a GPU instance has a share of memory and engines, a compute instance in it some
 * of its cores. To open one is a capability: a file below /proc/driver/nvidia/capabilities names the minor of a node in
 * /dev/nvidia-caps. Where /proc/devices has no "nvidia-caps", the file below /proc itself is the capability.
 */

#include "base/err.h"
#include "model/adapter.h"
#include "model/plan.h"
#include "nvidia/module.h"

/* The parts that there are of a machine's GPUs. */
struct mig_part {
	int minor; /* of the GPU */
	int gpu_instance, compute_instance;
};
struct mig_parts {
	struct mig_part *items;
	size_t count;
};

/**
 * mig_read_parts() - append the parts of the GPU at @position, by GPU instance and compute instance
 * @parts: the same once more
 *
 * Return: 0 or negative errno.
 */
int mig_read_parts(struct inventory *inventory, size_t position, struct mig_parts *parts);

/**
 * mig_plan() - the capabilities that a GPU or a part of one needs
 *
 * A GPU gets those of all its parts. Return: 0; CTR_GPU_E_NO_ADAPTER or negative errno with @err set.
 */
int mig_plan(const struct module *module, const struct mig_parts *parts, const struct adapter *adapter,
	     struct plan *plan, struct err *err);

/** The capability of a file below NVIDIA_PROC/capabilities, such as "mig/config". Return: as mig_plan(). */
int mig_plan_capability(const struct module *module, const char *name, const char *reason, struct plan *plan,
			struct err *err);
