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

/** Gives back what no command uses any more, once its range is removed. Return: what the driver returned. */
CUresult host_give(const struct range *range);

/** A context has ended: its managed memory goes with it. */
void host_forget_context(const struct context *context);

/**
 * file_find() - the file of memory that a program shares by a mapping
 * @ret_offset: where @at is in it
 *
 * Return: a descriptor of it; -1 if all of it is not one mapping of a file, or the file is not to be found.
 */
int file_find(uint64_t at, uint64_t bytes, uint64_t *ret_offset);

/* Small pieces. */

enum { SLAB_BYTES = 65536, SLAB_PIECE_MAX = SLAB_BYTES / 4 };

/** A place for @range, with which host_take() ends. @make: where a slab of so many bytes comes from */
CUresult slab_take(struct range *range, size_t bytes,
		   CUresult (*make)(const struct range *like, size_t bytes, uint64_t *ret));

/** Return: whether @range was a piece of a slab; *ret: the slab's address if that was its last one, and it goes; 0. */
bool slab_give(const struct range *range, uint64_t *ret);
