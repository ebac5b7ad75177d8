/* SPDX-License-Identifier: Apache-2.0 */

#include "engines/daemon_socket.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/str.h"

static const char scheme[] = "unix://";

/* "fd://": the service manager's, at the usual place. */
const char *daemon_socket_path(const struct daemon_kind *kind, const struct daemon *daemon)
{
	const char *value = NULL;
	bool told = false;

	while ((value = daemon_next_option(daemon, kind->socket_option, kind->socket_letter, value))) {
		if (str_has_prefix(value, scheme))
			return value + strlen(scheme);
		if (value[0] == '/')
			return value;
		told |= !str_has_prefix(value, "fd:");
	}
	return told ? NULL : kind->socket;
}

int daemon_socket_connect(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	_cleanup_close_ int fd = -1;

	if (strlen(path) >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	memcpy(address.sun_path, path, strlen(path));
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	/* A full queue is EAGAIN: whoever listens does not answer. */
	if (fd < 0 || connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
		return -errno;
	return steal_fd(&fd);
}

bool daemon_socket_is_of(const char *path, pid_t pid)
{
	_cleanup_close_ int fd = daemon_socket_connect(path);
	struct ucred peer = {0};
	socklen_t size = sizeof(peer);

	return fd < 0 || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0 || peer.pid == pid || peer.pid == 1;
}
