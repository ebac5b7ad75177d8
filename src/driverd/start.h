/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* How the client starts ctr-gpu-driverd: `ctr-gpu-driverd <milliseconds>` with the socket as its descriptor 3. */

enum {
	DRIVERD_SOCKET = 3,
	/* How much later than its caller's patience the child ends by itself. */
	DRIVERD_GRACE_MS = 1000,
};
