/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the server gives up: all of it before the driver's library is loaded, but for what only its start needs. */

#include "vcuda/protocol/start.h"

/** Before the library is loaded. Return: 0; a negative errno with *ret_step saying what could not be done. */
int server_sandbox_enter(const struct start *start, const char **ret_step);

/** Before the client is heard. Return: 0; a negative errno. */
int server_sandbox_close(const struct start *start);
