/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Device memory. */

#include <stdbool.h>
#include <stdint.h>

/** Return: whether memory was ever given back in the order of a stream. */
bool allocation_was_freed_in_streams(void);

/** Counts what pools keep by now, which they may give back when somebody has waited. Any thread may. */
void allocation_settle(void);

/** Counts memory that the driver is about to be asked for. Pools give back what they keep before it is too much. */
bool allocation_take(uint64_t bytes);
