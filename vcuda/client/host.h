/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Memory of the host that the client and its server have at one address, and with them the device. */

#include "vcuda/client/address_map.h"

/**
 * host_take() - have memory of zeros
 * @range: with its kind, flags and context; gets its place, once there is room for @bytes
 *
 * Small pieces share what was asked of the server. Return: what cuMemHostAlloc() would; CUDA_ERROR_NOT_SUPPORTED for
 * managed memory, where the device does not reach it.
 */
CUresult host_take(struct range *range, size_t bytes);

/**
 * Gives back what no command uses any more, once its range is removed. Return: what the driver returned; where that is
 * a failure, the memory stays, and can be given back later.
 */
CUresult host_give(const struct range *range);

/* Managed memory, which is such. */

/** host_give(), which forgets what was said of the memory, unless that stays. */
CUresult managed_give(const struct range *range);

/** A context has ended: its managed memory goes with it. */
void managed_forget_context(const struct context *context);
