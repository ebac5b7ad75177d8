/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Which of its GPUs a container's programs find first: the least loaded one when the first of them connects. */

#include "vcuda/manager/manager.h"

/** "GPU-5a3f1c2b-…" as bytes. Return: whether it is one. */
bool gpu_assign_read_uuid(const char *text, uint8_t ret[static 16]);

/**
 * gpu_assign_choose() - of a container's GPUs, the one on which the least memory is granted, then with the fewest
 * servers
 *
 * Return: its number; the first of equals.
 */
size_t gpu_assign_choose(const struct manager *manager, const struct tenant *tenant);

/** What a server is told of its client's GPUs: all of the container's, the chosen one first. */
void gpu_assign_list(const struct tenant *tenant, struct start *ret);
