/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Whether GPUs have room for what is to come back. A driver 580 that is asked to restore a process for which there is
 * none fails, and the process can never be restored again: what it had is lost. So that is never tried.
 */

#include <stdbool.h>
#include <stdint.h>

struct start_orders;

/* A server. */
struct room_process {
	int pid;
	unsigned slot;
};

/**
 * room_open() - begin to ask NVML, which is beside the driver's library, or where the loader finds it
 * @page:  of the container, where it is written down how much its processes have, and where
 * @gpus:  its GPUs' UUIDs, by number, START_GPUS at most
 */
bool room_open(const char *library, struct start_orders *page, const char *const *gpus, unsigned count);

/** Writes down how much these processes have on each GPU, before they are saved. */
void room_note(const struct room_process *processes, int count);

/** The same where NVML did not know these processes: how much has become free. */
void room_note_freed(const struct room_process *processes, int count);

/**
 * room_is_there() - whether the GPUs have as much free now, and some more
 * @places: where what they have comes to. What they have there now makes room, or is part of it
 */
bool room_is_there(uint64_t places, const struct room_process *processes, int count);
