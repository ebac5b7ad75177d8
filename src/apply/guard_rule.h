/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Tells the guard which adapters a container has chosen, before the container has the device. */

#include "base/err.h"
#include "base/log.h"
#include "devcgroup/devcgroup.h"
#include "model/plan.h"
#include "root/undo_log.h"

/* All of it is borrowed. */
struct guard_rule {
	const struct plan_choice *choice;
	const struct devcgroup *cgroup; /* the container's; NULL: it has none with device rules */
	struct undo_log *undo_log;
	const struct log *log;
	struct err *err;
};

/**
 * guard_rule_guard() - if the plan has a choice
 *
 * The cgroup's end takes it away. Return: 0, with a warning if it is not held and need not be; CTR_GPU_E_GUARD with the
 * error set.
 */
int guard_rule_guard(const struct guard_rule *tell);
