/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Behind ctr_gpu_context: the settings, and the sentence of the last error. */

#include "base/err.h"
#include "base/settings.h"
#include "lib/ctr-gpu.h"

struct ctr_gpu_log_target {
	ctr_gpu_log_fn log;
	void *user;
};

struct ctr_gpu_context {
	struct settings settings;
	struct err err;
	struct ctr_gpu_log_target target;
};
