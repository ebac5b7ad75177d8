/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The CDI specs that engines of every kind find GPUs by, for `--device nvidia.com/gpu=all`. They are the machine's and
 * serve all engines, so those that setup wrote go with the last engine that was set up. Functions that fail have said
 * why; they return 0 or the exit status.
 */

#include "cli/setup/setup.h"

/** Writes a spec for each kind of adapter, unless one exists. Succeeds also on a host without a GPU. */
int setup_cdi_put(struct setup *setup);

/** Removes those that are not in @kept, entries of the state as they were. */
int setup_cdi_take_back(struct setup *setup, const json_t *kept);

/** Removes all, unless the state has an engine that was set up. */
int setup_cdi_remove(struct setup *setup);
