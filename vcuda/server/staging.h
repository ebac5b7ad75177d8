/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The staging memory, which copies from and to ordinary memory pass through. */

#include "vcuda/server/server.h"

/** Return: CUDA_SUCCESS if the stream captures nothing. */
CUresult staging_check_capture(CUstream stream);

/** A context is about to end: nobody copies in it any more. Return: what is to be freed when it has. */
struct staging *staging_take_context(uint64_t context);
void staging_free(struct staging *staging);
