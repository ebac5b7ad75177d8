/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The server processes: one for each process of a container that uses CUDA. */

#include "vcuda/manager/manager.h"

/**
 * server_process_start() - a server for a connection
 * @client: the connection, which the server gets; stays the caller's, too
 *
 * Return: 0; negative errno.
 */
int server_process_start(struct manager *manager, struct tenant *tenant, int client);

/**
 * server_process_reattach() - one that an earlier manager has started
 * @known: of it: numbers and start times of server and client, and the slot
 *
 * Return: 0; -ESRCH if it is gone; negative errno.
 */
int server_process_reattach(struct manager *manager, struct tenant *tenant, const struct worker *known);

/**
 * server_process_sweep() - kill servers of which the manager knows nothing, and take back what they and others had
 *
 * For a manager that was started again, behind state_file_read(). One before it may have been killed before it wrote
 * down what it had just started, and servers may have ended since then. They are known by their users.
 */
void server_process_sweep(const struct manager *manager);

/** Whether a process is a server, or one that is about to become it, or a manager: what the package's programs are. */
bool server_process_runs_ours(pid_t pid);

/** Reads what it tells. */
void server_process_receive_reply(struct worker *worker);

/** Its client or its container has ended, or it is no longer wanted: asks it to end, and notes when to kill it. */
void server_process_stop(struct worker *worker);

/** Forgets one that has ended, gives back what it had of its container's quota, and says so if it crashed. */
void server_process_remove(struct manager *manager, struct worker *worker);
