/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the driver of the selected adapters can do. */

#include "model/backend.h"

/** As struct backend's facts(). */
int wsl_backend_facts(const struct settings *settings, void *seen, const struct adapter *const *selected, size_t count,
		      struct driver_facts *ret);
