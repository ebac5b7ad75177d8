/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Copies in graphs of which one side is ordinary memory. */

#include "vcuda/client/client.h"

/** Whether the stream captures, and the copy is such a one. */
bool paged_captures(CUstream stream, const CUDA_MEMCPY3D *copy);

/** The same of bytes in a row: @in: to the device; *ret: the copy. */
bool paged_captures_row(CUstream stream, CUdeviceptr device, const void *host, size_t bytes, bool in,
			CUDA_MEMCPY3D *ret);

/** Puts it into what the stream captures. */
CUresult paged_capture(CUstream stream, const CUDA_MEMCPY3D *copy);
