/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What kernels have of a context besides. */

#include "vcuda/protocol/types.h"

/** Return: how many bytes a thread's stack has in the current context; 0: the driver does not say. */
uint64_t context_limits_ask_stack(void);

/** Return: what the driver takes for as many stacks of @each bytes as there can be threads at once. */
uint64_t context_limits_of_stacks(uint64_t each);

/**
 * Counts them for the current context, by its handle, as far as they are not counted for it already.
 * Return: CUDA_ERROR_OUT_OF_MEMORY.
 */
CUresult context_limits_take_stacks(uint64_t each, uint64_t context);
