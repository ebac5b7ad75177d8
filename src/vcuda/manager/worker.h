/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The server processes: one for each process of a container that uses CUDA. */

#include "vcuda/manager/manager.h"

/**
 * worker_start() - a server for a connection
 * @client: the connection, which the server gets; stays the caller's, too
 *
 * Return: 0; negative errno.
 */
int worker_start(struct manager *manager, struct tenant *tenant, int client);

/** One that an earlier manager has started. Return: 0; -ESRCH if it is gone; negative errno. */
int worker_adopt(struct manager *manager, struct tenant *tenant, pid_t pid, uint64_t started, unsigned slot);

/** Reads what it tells. */
void worker_hear(struct worker *worker);

/** Its client or its container has ended, or it is no longer wanted: asks it to end, and notes when to kill it. */
void worker_stop(struct worker *worker);

/** Forgets one that has ended, gives back what it had of its container's quota, and says so if it crashed. */
void worker_bury(struct manager *manager, struct worker *worker);
