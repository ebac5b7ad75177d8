/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The staging memory, which copies from and to ordinary memory pass through. */

#include "vcuda/server/server.h"

/** Return: CUDA_SUCCESS if the stream captures nothing. */
CUresult staging_check_capture(CUstream stream);

/** A context has ended. */
void staging_forget_context(uint64_t context);
