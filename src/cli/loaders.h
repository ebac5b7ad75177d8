/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* `ctr-gpu load` for every kind of GPU of this host. The hook does not contain it. */

#include <stdbool.h>

#include "base/err.h"
#include "model/backend.h"

/**
 * loaders_run() - what is there and what is missing
 * @apply: do what is missing
 *
 * Return: 0; as decide() and apply() of struct backend_load, CTR_GPU_E_NO_DEVICE if no kind is here; with @err set.
 */
int loaders_run(const struct load_options *options, bool apply, struct load *ret, struct err *err);
