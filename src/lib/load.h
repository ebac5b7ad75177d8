/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Behind ctr_gpu_load. */

#include "nvidia/load.h"

struct ctr_gpu_load {
	struct ctr_gpu_context *context; /* borrowed */
	struct load_options options;     /* its driver_root is borrowed from the context's settings */
	struct load data;
	bool decided;
};
