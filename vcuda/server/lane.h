/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Threads that carry out the client's commands: each thread of the client has one here, its lane, which has what the
 * driver keeps for a thread (current context, mode of captures) for it alone.
 */

#include "vcuda/server/request.h"

/** Serves the client until it goes. */
void lane_run(void) __attribute__((noreturn));

/**
 * lane_leave() - go on without holding up other threads' commands
 * @hold: what the driver is about to work with besides the current context, and nobody may end meanwhile
 *
 * In a request whose operation may wait, before the driver is called. What the lead has for itself (see lane.c) is not
 * to be touched from here on to the end of the request.
 */
void lane_leave(struct request *q, struct object_ref hold);

/** Lanes have another current context than they know, or none. */
void lane_forget_context(void);
