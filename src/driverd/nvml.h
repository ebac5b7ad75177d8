/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* NVIDIA's libnvidia-ml.so (NVML) and libcuda.so, loaded into this process. */

#include "driverd/protocol.h"

/** Loads NVML at @path and fills in @answer, whose members belong to the caller. */
void nvml_list_names(const char *path, struct driverd_reply *answer);

/** Loads libcuda at @path and fills in @answer, as above. */
void cuda_read_version(const char *path, struct driverd_reply *answer);
