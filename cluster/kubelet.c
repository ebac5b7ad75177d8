/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Kubelet's directory of device plugins. It is looked at whenever something happens there, and every few seconds
 * besides: what counts is what is there now, not which events came.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/str.h"
#include "cluster/plugin.h"

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
