/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* One question to a child, whatever it is about. */

#include <stdbool.h>

#include "base/err.h"
#include "base/settings.h"

struct question {
	unsigned procedure;      /* of protocol.x */
	void (*decode)(void);    /* the answer's xdrproc_t */
	void *answer;            /* zeroed; released with xdr_free() by the caller, also after a failure */
	const char *library;     /* absolute path */
	bool opens_devices;      /* the library opens device nodes for writing */
	const char *advice;      /* the next thing to try when it fails, one line */
	const char *device;      /* what it hangs in when it hangs for good */
	const char *hang_advice;
};

/**
 * client_ask() - start a child, ask it, end it
 *
 * Return: 0 if there is an answer; CTR_GPU_E_DRIVER_LIBRARY, CTR_GPU_E_DRIVER_TIMEOUT or negative errno with @err set.
 */
int client_ask(const struct settings *settings, const struct question *question, struct err *err);

/** The sentence for an answer that is not DRIVERD_OK. @message: the child's words. Return: CTR_GPU_E_DRIVER_LIBRARY. */
int client_explain_status(const struct question *question, int status, char *message, struct err *err);
