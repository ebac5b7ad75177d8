/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Kubelet's directory of device plugins: our sockets in it, one for a resource, and kubelet itself. It is looked at
 * whenever something happens there, and every few seconds besides: what counts is what is there now, not which events
 * came.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/str.h"
#include "cluster/plugin.h"

/* ---- endpoint ---- */

/* A resource's socket. Kubelet empties the directory whenever it starts. */

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

/* Makes the socket, unless it is there. Return: 1 if made; 0; -EADDRINUSE: another plugin has it; negative errno. */
static int endpoint_open(struct endpoint *endpoint)
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

/* ---- kubelet ---- */

enum {
	KUBELET_LOOK_MS = 5000,
	KUBELET_ANSWER_MS = 5000,
	KUBELET_AGAIN_MS = 1000,
	KUBELET_WATCH_MS = 10 * 1000, /* from a registration until kubelet watches */
};

int kubelet_new(const char *directory, struct kubelet *ret)
{
	struct kubelet kubelet = {.watch = -1};

	kubelet.inotify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (kubelet.inotify < 0)
		return -errno;
	kubelet.directory = strdup(directory);
	if (!kubelet.directory || str_format(&kubelet.path, "%s/kubelet.sock", directory) < 0) {
		kubelet_clear(&kubelet);
		return -ENOMEM;
	}
	*ret = kubelet;
	return 0;
}

static void kubelet_end_call(struct kubelet *kubelet)
{
	if (kubelet->call)
		kubelet->call = registration_free(kubelet->call);
	kubelet->registering = NULL;
}

void kubelet_clear(struct kubelet *kubelet)
{
	kubelet_end_call(kubelet);
	(void)close(kubelet->inotify);
	free(kubelet->directory);
	free(kubelet->path);
	free(kubelet->complaint);
	*kubelet = (struct kubelet){.inotify = -1, .watch = -1};
}

void kubelet_gather(const struct kubelet *kubelet, struct waits *waits)
{
	waits_add(waits, kubelet->inotify, POLLIN);
	waits_until(waits, grpc_now() + KUBELET_LOOK_MS);
	if (kubelet->again > grpc_now())
		waits_until(waits, kubelet->again);
	if (!kubelet->call)
		return;
	waits_add(waits, registration_fd(kubelet->call), registration_events(kubelet->call));
	waits_until(waits, kubelet->deadline);
}

/* Each complaint once, until something else happens. @last: of kubelet, or of the resource that it is about */
static void kubelet_tell(char **last, const char *what, const char *why)
{
	_cleanup_free_ char *complaint = NULL;

	if (str_format(&complaint, "%s: %s", what, why) < 0 || (*last && streq(*last, complaint)))
		return;
	plugin_log("%s", complaint);
	free(*last);
	*last = steal_ptr(complaint);
}

/* A kubelet that starts makes its socket anew; its number may be the old one's then, its times are not. */
static bool kubelet_is_another(struct kubelet *kubelet)
{
	struct stat now;
	bool present = stat(kubelet->path, &now) == 0, same;

	same = present == kubelet->present &&
	       (!present || (now.st_ino == kubelet->seen.st_ino && now.st_dev == kubelet->seen.st_dev &&
			     now.st_ctim.tv_sec == kubelet->seen.st_ctim.tv_sec &&
			     now.st_ctim.tv_nsec == kubelet->seen.st_ctim.tv_nsec));
	kubelet->present = present;
	if (present)
		kubelet->seen = now;
	return !same;
}

/* The directory may be made later, and anew. To ask again for what is watched costs one call. */
static void kubelet_watch(struct kubelet *kubelet)
{
	char events[4096] __attribute__((aligned(__alignof__(struct inotify_event))));

	while (read(kubelet->inotify, events, sizeof(events)) > 0)
		;
	kubelet->watch = inotify_add_watch(kubelet->inotify, kubelet->directory,
					   IN_CREATE | IN_DELETE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE_SELF);
	if (kubelet->watch < 0)
		kubelet->watch = -errno;
}

static void kubelet_begin_call(struct kubelet *kubelet, struct endpoint *endpoint)
{
	size_t size = 0;
	uint8_t *request = answer_registration(endpoint->resource, endpoint->name, &size);
	int r = request ? registration_new(kubelet->path, "/v1beta1.Registration/Register", request, size,
					   &kubelet->call)
			: -ENOMEM;

	kubelet->again = grpc_now() + KUBELET_AGAIN_MS;
	if (r < 0) {
		kubelet_tell(&kubelet->complaint, kubelet->path, strerror(-r));
		return;
	}
	kubelet->registering = endpoint;
	kubelet->deadline = grpc_now() + KUBELET_ANSWER_MS;
}

static void kubelet_go_on(struct kubelet *kubelet, struct endpoint *endpoint, short events)
{
	enum registration_state state = registration_serve(kubelet->call, events);

	if (state == REGISTRATION_WAITS && grpc_now() < kubelet->deadline)
		return;
	if (state == REGISTRATION_DONE) {
		endpoint->registered = true;
		endpoint->unwatched = 0;
		kubelet->again = 0;
		plugin_log("kubelet has %s registered", endpoint->resource->name);
		free(kubelet->complaint);
		free(endpoint->complaint);
		kubelet->complaint = endpoint->complaint = NULL;
	} else
		kubelet_tell(&endpoint->complaint, "kubelet does not register",
			     state == REGISTRATION_WAITS ? "it does not answer" : registration_why(kubelet->call));
	kubelet_end_call(kubelet);
}

/* Return: 1 if it wants to be registered; 0; -EROFS. */
static int kubelet_prepare(struct kubelet *kubelet, struct endpoint *endpoint)
{
	int r;

	if (endpoint->registered && endpoint->unwatched && grpc_now() - endpoint->unwatched >= KUBELET_WATCH_MS) {
		plugin_log("kubelet does not watch %s any more", endpoint->resource->name);
		endpoint->registered = false;
	}
	r = endpoint_open(endpoint);
	if (r < 0)
		kubelet_tell(&endpoint->complaint, endpoint->path,
			     r == -EADDRINUSE ? "another device plugin listens there, and one is enough"
					      : strerror(-r));
	if (r == -EROFS)
		return r;
	return r >= 0 && !endpoint->registered && endpoint != kubelet->registering;
}

int kubelet_serve(struct kubelet *kubelet, struct endpoint *endpoints, size_t count, const struct waits *waits)
{
	struct endpoint *next = NULL;
	int r = 0;

	kubelet_watch(kubelet);
	if (kubelet_is_another(kubelet)) {
		kubelet_end_call(kubelet);
		kubelet->again = 0;
		for (size_t i = 0; i < count; i++)
			endpoints[i].registered = false;
	}
	if (kubelet->watch < 0)
		kubelet_tell(&kubelet->complaint, kubelet->directory, strerror(-kubelet->watch));
	if (kubelet->call && kubelet->registering)
		kubelet_go_on(kubelet, kubelet->registering, waits_find(waits, registration_fd(kubelet->call)));
	for (size_t i = 0; kubelet->watch >= 0 && r >= 0 && i < count; i++) {
		r = kubelet_prepare(kubelet, &endpoints[i]);
		if (r > 0 && !next)
			next = &endpoints[i];
	}
	if (r >= 0 && next && kubelet->present && !kubelet->call && grpc_now() >= kubelet->again)
		kubelet_begin_call(kubelet, next);
	return r < 0 ? r : 0;
}
