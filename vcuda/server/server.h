/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the parts of the server share: its start parameters, the memory that the client maps, the driver. */

#include <stdbool.h>

#include "vcuda/protocol/start.h"
#include "vcuda/protocol/types.h"
#include "vcuda/protocol/wire.h"

struct server {
	struct start start;
	struct wire *wire;
	uint8_t *staging;
	struct start_quota *quota;
	long spin, long_spin;     /* nanoseconds: the least and the most that it spins before it sleeps; 0: none */
	long wait_spin;           /* the same while it waits for the GPU */
	uint64_t arena;           /* address of the page-locked memory; 0: the client could not have it there */
	CUdevice gpu[START_GPUS]; /* the driver's numbers of those that the client sees */
	int driver_version;
};

extern struct server server;

/** Tells the manager of something. */
void server_tell(enum start_event_kind kind, uint64_t number, const char *text);

/** The same, once for each text. */
void server_tell_once(enum start_event_kind kind, const char *text);

/** The client broke the protocol: nothing that it says is believed any more. */
void server_end(const char *why) __attribute__((noreturn));
