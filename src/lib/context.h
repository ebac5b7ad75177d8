/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Behind ctr_gpu_context: the settings, and the sentence of the last error. */

#include "base/err.h"
#include "ctr-gpu.h"
#include "model/settings.h"
#include "root/undo_log.h"

struct ctr_gpu_log_target {
	ctr_gpu_log_fn log;
	void *user;
};

struct ctr_gpu_context {
	struct settings settings;
	struct err err;
	struct ctr_gpu_log_target target;
	struct undo_log
		*undo_log; /* of the child of ctr_gpu_run_in_child() that this is, shared with its parent; else NULL */
	pid_t caller;      /* who started its parent */
	bool ends;         /* child and parent end when the work is done */
};

/** The process that started this program. */
pid_t context_caller(const struct ctr_gpu_context *context);

/**
 * The list of a function's deeds: that of the child, released by its parent, or one of its own. NULL without memory.
 */
struct undo_log *context_begin_undo_log(const struct ctr_gpu_context *context);
void context_end_undo_log(const struct ctr_gpu_context *context, struct undo_log *undo_log);
