/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The system calls that a driver library may make in ctr-gpu-driverd. */

#include <stdbool.h>

/**
 * filter_load() - load the filter for all that the process does from then on
 * @opens_devices: whether it may open files for writing too
 *
 * Return: 0 or negative errno.
 */
int filter_load(bool opens_devices);
