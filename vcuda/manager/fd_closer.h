/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Descriptors that lie in a socket, sent and never read, are closed with it, by whoever closes it last; and that takes
 * as long as they have it: what is left in a TCP socket is waited for as long as its SO_LINGER says. The manager is not
 * to be kept by what a container has sent.
 */

#include <stddef.h>

/** Refuses descriptors that are sent to a socket, or to those that are accepted on it. Before Linux 6.16 it cannot. */
void fd_closer_refuse(int fd);

/** Closes sockets, or what came through one, without waiting for anything in them; below 0 there is none. */
void fd_closer_close(const int *fds, size_t count);
