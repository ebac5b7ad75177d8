/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Managed variables of modules (__managed__), which the program reads and writes at the address that kernels use. */

#include "vcuda/client/client.h"

/**
 * variable_add() - the program is told where a managed variable is
 * @owner: the module or library that it is of
 *
 * Asked for again, it is the same. Return: CUDA_ERROR_NOT_SUPPORTED if the program has other memory there, or no
 * memory of the host is reached by the device; CUDA_ERROR_OUT_OF_MEMORY.
 */
CUresult variable_add(uint64_t at, uint64_t bytes, uint64_t owner, struct context *context);

/** The module or library is unloaded. */
void variable_forget_owner(uint64_t owner);

/** A context has ended in which the program was told of variables. */
void variable_forget_context(const struct context *context);
