/* SPDX-License-Identifier: Apache-2.0 */

/* A resource's socket in kubelet's directory, which kubelet empties whenever it starts. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/str.h"
#include "cluster/plugin.h"

enum { ENDPOINT_BACKLOG = 128 };

static int endpoint_answer(void *user, const char *method, const uint8_t *request, size_t size, struct grpc_answer *ret)
{
	const struct endpoint *endpoint = user;

	return answer_make(endpoint->resource, endpoint->strategies, method, request, size, ret);
}

int endpoint_new(const char *directory, const struct resource *resource, unsigned strategies, struct endpoint *ret)
{
	struct sockaddr_un address;
	char *path = NULL;

	/* The vendor's name has no slash, and the resource's one. */
	if (str_format(&path, "%s/ctr-gpu-%s.sock", directory, resource->name) < 0)
		return -ENOMEM;
	*strrchr(path, '/') = '_';
	if (strlen(path) >= sizeof(address.sun_path)) {
		free(path);
		return -ENAMETOOLONG;
	}
	*ret = (struct endpoint){.resource = resource,
				 .strategies = strategies,
				 .path = path,
				 .name = path + strlen(directory) + 1,
				 .listener = -1,
				 .published = resource->changes};
	return 0;
}

static void endpoint_drop(struct endpoint *endpoint, size_t number)
{
	(void)connection_free(endpoint->peers[number]);
	endpoint->peers[number] = endpoint->peers[--endpoint->peer_count];
}

static void endpoint_close(struct endpoint *endpoint)
{
	while (endpoint->peer_count > 0)
		endpoint_drop(endpoint, endpoint->peer_count - 1);
	if (endpoint->listener >= 0)
		(void)close(endpoint->listener);
	endpoint->listener = -1;
	endpoint->registered = false;
}

static bool endpoint_is_there(const struct endpoint *endpoint)
{
	struct stat now;

	return endpoint->listener >= 0 && lstat(endpoint->path, &now) == 0 && now.st_dev == endpoint->device &&
	       now.st_ino == endpoint->inode;
}

void endpoint_clear(struct endpoint *endpoint)
{
	if (endpoint_is_there(endpoint))
		(void)unlink(endpoint->path);
	endpoint_close(endpoint);
	free(endpoint->path);
	free(endpoint->complaint);
	endpoint->path = endpoint->complaint = NULL;
}

/*
 * Whether another plugin listens there. It would make its socket anew if ours took its place, and both would do nothing
 * else any more. What a killed one left does not answer.
 */
static bool endpoint_is_taken(const struct endpoint *endpoint)
{
	_cleanup_close_ int fd = fd_connect(endpoint->path);

	return fd >= 0 || fd == -EAGAIN;
}

int endpoint_open(struct endpoint *endpoint)
{
	_cleanup_close_ int fd = -1;
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct stat made;

	if (endpoint_is_there(endpoint))
		return 0;
	endpoint_close(endpoint);
	if (endpoint_is_taken(endpoint))
		return -EADDRINUSE;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	memcpy(address.sun_path, endpoint->path, strlen(endpoint->path) + 1);
	if (unlink(endpoint->path) < 0 && errno != ENOENT)
		return -errno;
	/* By the umask its owner and root alone may connect. */
	if (bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 || listen(fd, ENDPOINT_BACKLOG) < 0 ||
	    lstat(endpoint->path, &made) < 0)
		return -errno;
	endpoint->device = made.st_dev;
	endpoint->inode = made.st_ino;
	endpoint->listener = steal_fd(&fd);
	return 1;
}

void endpoint_gather(const struct endpoint *endpoint, struct waits *waits)
{
	waits_add(waits, endpoint->listener, POLLIN);
	for (size_t i = 0; i < endpoint->peer_count; i++) {
		waits_add(waits, connection_fd(endpoint->peers[i]), connection_events(endpoint->peers[i]));
		waits_until(waits, connection_deadline(endpoint->peers[i]));
	}
}

/* A crowd of peers that say nothing keeps no other out, and takes the place of none that watches. */
static bool endpoint_make_room(struct endpoint *endpoint)
{
	size_t victim = endpoint->peer_count;

	if (endpoint->peer_count < ENDPOINT_PEERS_MAX)
		return true;
	for (size_t i = 0; i < endpoint->peer_count; i++)
		if (!connection_is_watching(endpoint->peers[i]) &&
		    (victim == endpoint->peer_count ||
		     connection_deadline(endpoint->peers[i]) < connection_deadline(endpoint->peers[victim])))
			victim = i;
	if (victim == endpoint->peer_count)
		return false;
	endpoint_drop(endpoint, victim);
	return true;
}

static void endpoint_accept(struct endpoint *endpoint)
{
	_cleanup_close_ int fd = accept4(endpoint->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0 || !endpoint_make_room(endpoint))
		return;
	endpoint->service.answer = endpoint_answer;
	endpoint->service.user = endpoint;
	if (connection_new(steal_fd(&fd), &endpoint->service, &endpoint->peers[endpoint->peer_count]) == 0)
		endpoint->peer_count++;
}

void endpoint_serve(struct endpoint *endpoint, const struct waits *waits)
{
	bool changed = endpoint->published != endpoint->resource->changes, watched = false;
	int64_t now = grpc_now();

	endpoint->published = endpoint->resource->changes;
	for (size_t i = endpoint->peer_count; i-- > 0;) {
		struct connection *peer = endpoint->peers[i];

		if (changed)
			connection_publish(peer);
		if (!connection_serve(peer, waits_find(waits, connection_fd(peer))) || connection_deadline(peer) <= now)
			endpoint_drop(endpoint, i);
		else
			watched = watched || connection_is_watching(peer);
	}
	if (watched || !endpoint->registered)
		endpoint->unwatched = 0;
	else if (endpoint->unwatched == 0)
		endpoint->unwatched = now;
	if (endpoint->listener >= 0 && waits_find(waits, endpoint->listener))
		endpoint_accept(endpoint);
}
