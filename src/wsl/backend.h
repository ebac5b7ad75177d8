/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The backend for GPU-PV hosts: adapters behind /dev/dxg, drivers in stores that the Windows host shares. */

#include "model/backend.h"

extern const struct backend backend_gpu_pv;
