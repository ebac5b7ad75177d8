/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Whether GPUs have room for what is to come back. A driver 580 that is asked to restore a process for which there is
 * none fails, and the process can never be restored again: what it had is lost. So that is never tried.
 */

#include <stdbool.h>

struct start_orders;

/**
 * room_open() - begin to ask NVML, which is beside the driver's library, or where the loader finds it
 * @page: of the container, where it is written down how much its processes have
 */
bool room_open(const char *library, struct start_orders *page);

/** Writes down how much these processes have on each GPU, before they are saved. */
void room_note(const int *pids, int count);

/** The same where NVML did not know these processes: how much has become free. */
void room_note_freed(void);

/** Whether each GPU has as much free now, and some more. */
bool room_is_there(void);
