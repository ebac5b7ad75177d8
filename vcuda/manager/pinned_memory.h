/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The host's memory that servers keep: page-locked memory, and what clients have sent and not used yet. */

#include "vcuda/manager/manager.h"

/** Return: how much all containers together may have of it, which is half of the host's memory. */
uint64_t pinned_memory_measure_host(void);

/**
 * pinned_memory_host_memory() - say anew how much each container may have, when one has come or gone
 *
 * All get the same share of manager->host_memory; who has more keeps it and gets no more, and the others share the
 * rest. So the limits never come to more than there is.
 */
void pinned_memory_host_memory(struct manager *manager);
