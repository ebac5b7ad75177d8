/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Contexts as the client keeps them: which there are, of which device, how often a primary one is held. */

#include "vcuda/client/thread.h"

/** Return: the context of a handle; NULL if there is none. */
struct context *context_find(uint64_t handle);

/** Return: the current context, or what a call without one fails with. */
CUresult context_current(struct context **ret);
