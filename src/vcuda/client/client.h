/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a process knows of its server, from a successful cuInit() on. */

#include <stdbool.h>

#include "vcuda/client/lock.h"
#include "vcuda/start.h"
#include "vcuda/types.h"
#include "vcuda/wire.h"

/* A page that a child of fork(2) finds empty: there, the driver is not initialized, and cannot be. */
struct client_life {
	uint32_t ready;
};

struct client {
	struct client_life *life;
	struct wire *wire;
	uint8_t *staging;
	int socket;
	uint64_t arena;       /* address of the page-locked memory; 0: it is not at the same address in the server */
	_Atomic int captures; /* that have begun and not ended: nothing is deferred then */
	bool waits;           /* for every answer: CTR_GPU_VCUDA_SYNC=1 */
	struct wire_host host;
	struct wire_device device[START_GPUS];
};

extern struct client client;

/** Return: a device's description; NULL if there is none of that number. */
static inline const struct wire_device *client_device(CUdevice device)
{
	return device >= 0 && device < client.host.device_count ? &client.device[device] : NULL;
}

/** Whether the server is there no more. */
bool client_is_lost(void);
