/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What escapes.so tries to do in ctr-gpu-driverd, as bits. */

enum attempt {
	ATTEMPT_WRITE_FILE = 1 << 0,
	ATTEMPT_SOCKET = 1 << 1,
	ATTEMPT_EXECUTE = 1 << 2,
	ATTEMPT_FORK = 1 << 3,
	ATTEMPT_ENVIRONMENT = 1 << 4,
	ATTEMPT_MOUNT = 1 << 5,
	ATTEMPT_TRACE = 1 << 6,
	ATTEMPT_SOMEBODY = 1 << 7,
	ATTEMPT_DESCRIPTORS = 1 << 8,
	ATTEMPT_DEADLINE = 1 << 9,
	ATTEMPT_CAPABILITIES = 1 << 10,
	ATTEMPT_RIGHTS = 1 << 11,
	ATTEMPT_SIGNAL = 1 << 12,
	ATTEMPT_DEVICES = 1 << 13,
	ATTEMPT_PASS = 1 << 14,
	ATTEMPT_LOCK = 1 << 15,
	ATTEMPT_NEIGHBOURS = 1 << 16,
	ATTEMPT_THREADS = 1 << 17,
};
