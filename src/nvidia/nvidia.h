/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The backend for native Linux: GPUs behind /dev/nvidia*, the driver's files installed on this machine. */

#include "base/backend.h"

extern const struct backend backend_nvidia;
