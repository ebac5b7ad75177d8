/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Failures of system calls that say nothing of what the kernel can do. What it cannot do is kept until the next boot
 * (guard/check_cache.h), so nothing else may be told as that.
 */

#include <stdbool.h>

/** Whether the same may work later, with this kernel and driver; @r is a negative errno. */
bool errno_is_temporary(int r);
