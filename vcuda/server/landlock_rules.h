/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Which files a server may open: what the driver needs, and the nodes of the granted GPUs. */

#include "vcuda/protocol/start.h"

/**
 * landlock_rules_close() - from here on, nothing else can be opened, made, changed or removed
 *
 * Return: 0, also where the kernel has no Landlock: everything that everybody may open stays open then, and
 * ctr-gpu-doctor(1) says so; negative errno.
 */
int landlock_rules_close(const struct start *start);
