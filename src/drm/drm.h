/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The backend for GPUs and NPUs of AMD and Intel on native Linux: drivers of the kernel's own (amdgpu, i915, xe,
 * intel_vpu, amdxdna), whose libraries are the image's. A container needs their device nodes and nothing else.
 */

#include "model/backend.h"

extern const struct backend backend_drm;
extern const struct backend_load loader_drm;
