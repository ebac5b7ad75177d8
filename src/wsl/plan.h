/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a container needs for adapters behind /dev/dxg. */

#include "model/backend.h"

/** As struct backend's plan(). */
int gpu_pv_plan(const struct settings *settings, void *seen, const struct request *request,
		const struct adapter *const *selected, size_t count, struct plan *plan, struct err *err);
