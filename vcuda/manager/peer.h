/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Root's connections to the control socket. Each has one message at a time, of a bounded size, and a time by which it
 * must be there.
 */

#include <poll.h>

#include "vcuda/manager/manager.h"

struct peer {
	struct peer *next;
	int fd;
	char *in, *out;
	size_t in_size, out_size, out_at;
	int64_t deadline;
	char granted[MANAGER_ID_MAX + 1]; /* ends with the connection, unless it is kept; "": nothing */
	uid_t granted_uid;
};

/** Accepts a connection, of root. */
void peer_accept(struct peer **peers, int listener);

/** What to wait for. */
short peer_events(const struct peer *peer);

/** Reads, answers or writes, as far as that goes. Return: whether the connection goes on. */
bool peer_serve(struct manager *manager, struct peer *peer);

/** Ends a connection, and what hangs on it. */
void peer_close(struct manager *manager, struct peer **peers, struct peer *peer);
