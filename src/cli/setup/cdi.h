/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The CDI specs that engines of every kind find GPUs by, for `--device nvidia.com/gpu=all`. They are the machine's and serve
 * all engines, so the journal remembers for which ones they were written, and they go with the last of these.
 */

#include "cli/setup/journal.h"
#include "cli/setup/setup.h"

/**
 * Writes a spec per kind of adapter, unless there is one already. That this host has no GPU is no failure. After a failure some
 * may be written. Return: 0 or the exit status.
 */
int setup_cdi_put(const struct setup *setup, struct journal *journal);

/**
 * setup_cdi_remove() - remove the specs that were written, unless another engine was set up, too
 * @kept: entries of the journal; those in which this engine is stay; NULL: none
 *
 * Return: 0 or the exit status.
 */
int setup_cdi_remove(const struct setup *setup, struct journal *journal, const json_t *kept);
