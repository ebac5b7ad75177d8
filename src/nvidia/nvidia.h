/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The backend for native Linux: GPUs behind /dev/nvidia*, the driver's files installed on this machine. */

#include "driverd/driverd.h"
#include "model/backend.h"

extern const struct backend backend_nvidia;
extern const struct backend_load loader_nvidia;

/* Parts of a plan by themselves, for hooks that NVIDIA's CDI specs name. Each returns 0 or -ENOMEM. */

/** Prevents the driver's libraries from making device nodes; without such a driver, does nothing. */
int nvidia_plan_params(struct plan *plan);

/** Has EGL show the GPUs with these minors only. Lists of a driver's profiles end at 64. */
int nvidia_plan_profile(unsigned long long minors, struct plan *plan);
enum { NVIDIA_PROFILE_MINORS = 64 };

/** Has NVML watch this host's GPUs. Return: as driverd_watch_start(); -ENOENT without NVML or /dev/nvidiactl. */
int nvidia_watch(const struct settings *settings, const char *without, struct driverd_watch *ret, struct err *err);
