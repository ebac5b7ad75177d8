/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Behind ctr_gpu_request. What a container asks for by itself is read in src/oci/env_request.h. */

#include "lib/context.h"
#include "model/request.h"

struct ctr_gpu_request {
	struct ctr_gpu_context *context;
	struct request data;
};
