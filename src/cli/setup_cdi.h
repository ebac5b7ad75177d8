/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The CDI specs that engines of every kind find GPUs by, for `--device nvidia.com/gpu=all`. They are the machine's and serve
 * all engines, so the journal remembers for which ones they were written, and they go with the last of these.
 */

#include "cli/journal.h"
#include "cli/setup.h"

/** Writes a spec per kind of adapter, unless there is one already. That this host has no GPU is no failure. Return: 0 or the exit status. */
int setup_cdi_put(const struct setup *setup, struct journal *journal);

/** Removes those that were written, unless another engine was set up, too. Return: 0 or the exit status. */
int setup_cdi_remove(const struct setup *setup, struct journal *journal);
