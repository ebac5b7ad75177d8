/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* `ctr-gpu load` for every kind of GPU of this host. The hook does not contain it. */

#include "base/err.h"
#include "model/load.h"

/**
 * loaders_decide() - what is there and what is missing
 *
 * Return: 0; as decide() of struct loader, CTR_GPU_E_NO_DEVICE if no kind is here; with @err set.
 */
int loaders_decide(const struct load_options *options, struct load *ret, struct err *err);

/**
 * loaders_apply() - do what is missing; @ret has what was done.
 * Return: 0; as decide() and apply() of struct loader, with @err set.
 */
int loaders_apply(const struct load_options *options, struct load *ret, struct err *err);
