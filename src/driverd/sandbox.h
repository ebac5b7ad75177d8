/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The rights that ctr-gpu-driverd gives up before it loads a vendor's library. */

#include <stdbool.h>

/**
 * sandbox_enter() - keep nothing but what a driver library needs to describe the hardware
 * @milliseconds:  after which the kernel ends the process, whatever the library does
 * @opens_devices: whether files may be opened for writing; none is created or truncated in any case
 * @ret_step:      on failure, what could not be done; static
 *
 * Return: 0 or negative errno.
 */
int sandbox_enter(unsigned milliseconds, bool opens_devices, const char **ret_step);
