/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * How the client starts ctr-gpu-driverd: `ctr-gpu-driverd <milliseconds> [opens-devices]` with the socket as its
 * descriptor 3.
 */

/* The library opens device nodes for writing, as NVML does; without it nothing is opened but for reading. */
#define DRIVERD_OPENS_DEVICES "opens-devices"

enum {
	DRIVERD_SOCKET = 3,
	/* How much later than its caller's patience the child ends by itself. */
	DRIVERD_GRACE_MS = 1000,
};
