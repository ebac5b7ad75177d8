/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Contexts as the client keeps them: which there are, of which device, how often a primary one is held. */

#include "vcuda/client/client.h"

/** Return: the context of a handle; NULL if there is none. */
struct context *context_find(uint64_t handle);

/** Return: the current context, or what a call without one fails with. */
CUresult context_current(struct context **ret);

/* Code: images on their way to the server, and what the client knows of the functions in them. */

struct function {
	_Atomic uint64_t handle;
	_Atomic uint32_t epoch; /* of all code; another than now: ask again */
	struct wire_function info;
};

/** Gets a function's parameters and limits, from the server the first time. */
CUresult image_function(uint64_t handle, const struct function **ret);

/** What was known of functions is to be asked for again: a module or a context is gone. */
void image_forget(uint64_t owner);

/* Launches of kernels. */

/** Return: the same configuration with the thread's own stream in place of the null stream. */
static inline const CUlaunchConfig *launch_config_of_thread(const CUlaunchConfig *config, CUlaunchConfig *copy)
{
	if (!config || config->hStream)
		return config;
	*copy = *config;
	copy->hStream = WIRE_STREAM_THREAD;
	return copy;
}
