/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* One question to a child, whatever it is about. */

#include <stdbool.h>

#include "base/err.h"
#include "driverd/protocol.h"
#include "model/settings.h"

struct question {
	enum driverd_procedure procedure;
	const char *library; /* absolute path */
	bool opens_devices;  /* the library opens device nodes for writing */
	const char *advice;  /* the next thing to try when it fails, one line */
	const char *device;  /* what it hangs in when it hangs for good */
	const char *hang_advice;
};

/**
 * client_ask() - start a child, ask it, end it
 * @ret: DRIVERD_OK and what was asked for, owned by the caller
 *
 * Return: 0; CTR_GPU_E_DRIVER_LIBRARY, CTR_GPU_E_DRIVER_TIMEOUT or negative errno with @err set.
 */
int client_ask(const struct settings *settings, const struct question *question, struct driverd_reply *ret,
	       struct err *err);
