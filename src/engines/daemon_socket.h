/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Where an engine's daemon listens, and who that is. */

#include "engines/daemon.h"

/** Return: the path of its socket, borrowed; NULL if it was told to have none, or none is known. */
const char *daemon_socket_path(const struct daemon_kind *kind, const struct daemon *daemon);

/** A connection that does not wait, also if whoever listens does not answer. Return: descriptor; negative errno. */
int daemon_socket_connect(const char *path);

/**
 * daemon_socket_is_of() - whether a socket is this process's
 *
 * The kernel notes who listens (SO_PEERCRED). A service manager that starts the daemon on demand listens for it.
 *
 * Return: false only if another process listens there.
 */
bool daemon_socket_is_of(const char *path, pid_t pid);
