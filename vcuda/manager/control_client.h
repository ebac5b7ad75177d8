/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Root's connections to the control socket. Each has one message at a time, of a bounded size, and a time by which it
 * must be there.
 */

#include <poll.h>

#include "vcuda/manager/manager.h"

struct control_client {
	struct control_client *next;
	int fd;
	char *in, *out;
	size_t in_size, out_size, out_at;
	int64_t deadline;
	char granted[MANAGER_ID_MAX + 1]; /* ends with the connection, unless it is kept; "": nothing */
	uid_t granted_uid;
};

/** Accepts a connection, of root. */
void control_client_accept(struct control_client **peers, int listener);

/** What to wait for. */
short control_client_events(const struct control_client *peer);

/** Reads, answers or writes, as far as that goes. Return: whether the connection goes on. */
bool control_client_serve(struct manager *manager, struct control_client *peer);

/** Ends a connection, and what hangs on it. */
void control_client_close(struct manager *manager, struct control_client **peers, struct control_client *peer);
