/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Copies that are more than bytes in a row from device to device. What memory is, as all copies have it. */

#include "vcuda/client/client.h"

enum { COPY_HOST = 1, COPY_DEVICE = 2, COPY_ARRAY = 3, COPY_UNIFIED = 4 };

/**
 * managed_finish() - wait for what has begun with @r, where the host may read what it writes, or write what it reads
 * @to, @from: 0: neither is memory at an address
 *
 * What is a device's alone is not waited for: commands that follow find it done.
 */
CUresult managed_finish(CUresult r, CUdeviceptr to, CUdeviceptr from, CUstream stream);

/** Copies of which one side at least is an array. @waits: until it is done */
CUresult array_copy(const CUDA_MEMCPY3D *copy, CUstream stream, bool waits);

/** Return: a plane as what it is with one more dimension. */
CUDA_MEMCPY3D array_box_of(const CUDA_MEMCPY2D *copy);

/* Copies in graphs of which one side is ordinary memory, or both are the host's. */

/** Whether the stream captures, and the copy is such a one. */
bool paged_captures(CUstream stream, const CUDA_MEMCPY3D *copy);

/** The same of bytes in a row: @in: to the device; *ret: the copy. */
bool paged_captures_row(CUstream stream, CUdeviceptr device, const void *host, size_t bytes, bool in,
			CUDA_MEMCPY3D *ret);

/** Puts it into what the stream captures. */
CUresult paged_capture(CUstream stream, const CUDA_MEMCPY3D *copy);
