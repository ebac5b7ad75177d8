/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Launches of kernels. */

#include "vcuda/client/thread.h"

/** Return: the same configuration with the thread's own stream in place of the null stream. */
static inline const CUlaunchConfig *launch_config_of_thread(const CUlaunchConfig *config, CUlaunchConfig *copy)
{
	if (!config || config->hStream)
		return config;
	*copy = *config;
	copy->hStream = WIRE_STREAM_THREAD;
	return copy;
}
