/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The libraries in PATH_WSL_LIB that programs load first. */

#include <stdbool.h>

#include "base/err.h"
#include "base/paths.h"

/** What to do where @file of a directory of the driver is missing or damaged: a sentence. */
const char *loaders_remedy(const char *file, bool wsl);

/**
 * loaders_check() - whether programs find libdxcore and, with @nvidia, NVIDIA's loader for CUDA
 *
 * Return: 0; CTR_GPU_E_DRIVER_LIBRARY, with @err set, if one is missing, empty or a link to nothing.
 */
int loaders_check(bool nvidia, struct err *err);
