/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Whether the kernel holds the process at the other end of a socket, so that its number is nobody else's: Linux 6.5. */

#include <errno.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <unistd.h>

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

static inline bool peer_is_held(int connection)
{
	int pidfd = -1;
	socklen_t size = sizeof(pidfd);

	if (getsockopt(connection, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &size) < 0)
		return errno != ENOPROTOOPT;
	(void)close(pidfd);
	return true;
}
