/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The system calls that a driver library may make in ctr-gpu-driverd. */

/** Loads the filter for all that the process does from then on. Return: 0 or negative errno. */
int filter_load(void);
