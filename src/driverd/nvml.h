/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* NVIDIA's libnvidia-ml.so (NVML) and libcuda.so, loaded into this process. */

struct driverd_parts_answer; /* of protocol.x */
struct driverd_version_answer;

/** Loads NVML at @path and fills in @answer, whose members belong to the caller (xdr_free()). */
void nvml_list_parts(const char *path, struct driverd_parts_answer *answer);

/** Loads libcuda at @path and fills in @answer, as above. */
void cuda_read_version(const char *path, struct driverd_version_answer *answer);
