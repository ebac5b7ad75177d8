/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* How a choice among the adapters of a GPU-PV host is held, by the administrator's wish and what this host can do. */

#include "base/err.h"
#include "model/backend.h"
#include "model/plan.h"
#include "model/settings.h"

/**
 * enforce_plan() - fill in the plan's choice; nothing for all GPUs, which is what most containers ask for
 * @selected: of this backend
 *
 * Return: 0; CTR_GPU_E_GUARD with @err set if the choice must be held and cannot be; -ENOMEM.
 */
int enforce_plan(const struct settings *settings, const struct adapter *const *selected, size_t count,
		 struct plan *plan, struct err *err);

/** Whether these are not all GPUs of the host. NPUs are not counted: nobody expects one beside the GPUs. */
bool enforce_is_choice(const struct adapter *const *selected, size_t count);

/** The same for whichever adapter is chosen: hold() of struct backend. */
int enforce_tell(const struct settings *settings, const struct adapter *adapters, size_t count, struct held *ret);
