/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Behind ctr_gpu_plan. */

#include "model/plan.h"

struct ctr_gpu_plan {
	struct plan data;
};
