/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Copies from and to arrays. What memory is, as all copies have it. */

#include "vcuda/client/client.h"

enum { COPY_HOST = 1, COPY_DEVICE = 2, COPY_ARRAY = 3, COPY_UNIFIED = 4 };

/** Copies of which one side at least is an array. @waits: until it is done */
CUresult array_copy(const CUDA_MEMCPY3D *copy, CUstream stream, bool waits);

/** Return: a plane as what it is with one more dimension. */
CUDA_MEMCPY3D array_box_of(const CUDA_MEMCPY2D *copy);
