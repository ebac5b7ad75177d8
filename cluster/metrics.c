/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A page for Prometheus: what this node offers, and which pod has it, for which kubelet is asked each time. It is
 * served by HTTP/1.1 on a Unix socket or on this machine's own network, one page a connection, and only where the
 * administrator wants it.
 */

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "pod_resources.pb-c.h"

#include "base/str.h"
#include "cluster/plugin.h"

#define METRICS_LOOPBACK "127.0.0.1:"

enum {
	METRICS_BACKLOG = 8,
	METRICS_PEER_MS = 5000,
	METRICS_ASK_MS = 1000, /* which kubelet has for its answer */
};

/* ---- where ---- */

static int metrics_listen_unix(const char *path, int *ret)
{
	_cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct stat st;

	if (fd < 0)
		return -errno;
	if (strlen(path) >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	memcpy(address.sun_path, path, strlen(path) + 1);
	/* What an earlier plugin has left; any other file was named by mistake, and bind(2) refuses it. */
	if (lstat(path, &st) == 0 && S_ISSOCK(st.st_mode) && unlink(path) < 0)
		return -errno;
	if (bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 || listen(fd, METRICS_BACKLOG) < 0)
		return -errno;
	*ret = steal_fd(&fd);
	return 0;
}

static int metrics_listen_loopback(const char *port, int *ret)
{
	_cleanup_close_ int fd = -1;
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	const int yes = 1;
	char *end;
	long number = strtol(port, &end, 10);

	if (*port < '1' || *port > '9' || *end || number > UINT16_MAX)
		return -EINVAL;
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	address.sin_port = htons((uint16_t)number);
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
	if (bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 || listen(fd, METRICS_BACKLOG) < 0)
		return -errno;
	*ret = steal_fd(&fd);
	return 0;
}

int metrics_open(const char *where, struct metrics *ret)
{
	*ret = (struct metrics){.listener = -1};
	if (where[0] == '/')
		return metrics_listen_unix(where, &ret->listener);
	if (str_has_prefix(where, METRICS_LOOPBACK))
		return metrics_listen_loopback(where + strlen(METRICS_LOOPBACK), &ret->listener);
	return -EINVAL;
}

/* ---- the page ---- */

/* A label's value; what a pod is called is Kubernetes' to check, and the page's lines hold in any case. */
static int metrics_add_label(char **page, const char *before, const char *value)
{
	int r = str_append(page, "%s=\"", before);

	for (; r == 0 && *value; value++)
		if ((unsigned char)*value >= ' ')
			r = str_append(page, "%s%c", *value == '"' || *value == '\\' ? "\\" : "", *value);
	return r == 0 ? str_append(page, "\"") : r;
}

static int metrics_add_devices(char **page, const struct resources *resources)
{
	int r = str_append(page, "# HELP ctr_gpu_device_healthy Whether a pod can have the device.\n"
				 "# TYPE ctr_gpu_device_healthy gauge\n");

	for (size_t i = 0; i < resources->count; i++)
		for (size_t j = 0; r == 0 && j < resources->list[i].count; j++) {
			const struct device *device = &resources->list[i].devices[j];

			r = metrics_add_label(page, "ctr_gpu_device_healthy{resource", resources->list[i].name);
			if (r == 0)
				r = metrics_add_label(page, ",device", device->id);
			if (r == 0)
				r = str_append(page, "} %d\n", device->healthy);
		}
	return r;
}

static int metrics_add_grants(char **page, const struct resources *resources, const Podresources__PodResources *pod,
			      const Podresources__ContainerResources *container)
{
	int r = 0;

	for (size_t i = 0; i < container->n_devices; i++) {
		const Podresources__ContainerDevices *devices = container->devices[i];
		const struct resource *resource = resources_find(resources, devices->resource_name);

		for (size_t j = 0; resource && r == 0 && j < devices->n_device_ids; j++) {
			r = metrics_add_label(page, "ctr_gpu_device_granted{resource", resource->name);
			if (r == 0)
				r = metrics_add_label(page, ",device", devices->device_ids[j]);
			if (r == 0)
				r = metrics_add_label(page, ",namespace", pod->namespace_);
			if (r == 0)
				r = metrics_add_label(page, ",pod", pod->name);
			if (r == 0)
				r = metrics_add_label(page, ",container", container->name);
			if (r == 0)
				r = str_append(page, "} 1\n");
		}
	}
	return r;
}

/* @message: what kubelet answered. What cannot be read counts as no answer. */
static int metrics_add_pods(char **page, const struct resources *resources, const uint8_t *message, size_t size)
{
	Podresources__ListPodResourcesResponse *list =
		message ? podresources__list_pod_resources_response__unpack(NULL, size, message) : NULL;
	int r = str_append(page,
			   "# HELP ctr_gpu_kubelet_answers Whether kubelet says which pods have devices.\n"
			   "# TYPE ctr_gpu_kubelet_answers gauge\nctr_gpu_kubelet_answers %d\n"
			   "# HELP ctr_gpu_device_granted A device that a container of a pod has.\n"
			   "# TYPE ctr_gpu_device_granted gauge\n",
			   list != NULL);

	for (size_t i = 0; list && i < list->n_pod_resources; i++)
		for (size_t j = 0; r == 0 && j < list->pod_resources[i]->n_containers; j++)
			r = metrics_add_grants(page, resources, list->pod_resources[i],
					       list->pod_resources[i]->containers[j]);
	if (list)
		podresources__list_pod_resources_response__free_unpacked(list, NULL);
	return r;
}

/* ---- peers ---- */

static void metrics_drop(struct metrics *metrics, size_t number)
{
	struct metrics_peer *peer = &metrics->peers[number];

	(void)close(peer->fd);
	free(peer->answer);
	*peer = metrics->peers[--metrics->peer_count];
}

static int metrics_answer(struct metrics_peer *peer, const char *status, const char *page)
{
	return str_format(&peer->answer,
			  "HTTP/1.1 %s\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: %zu\r\n"
			  "Connection: close\r\n\r\n%s",
			  status, strlen(page), page);
}

/* Return: whether the peer stays. */
static bool metrics_read(struct metrics_peer *peer)
{
	ssize_t size = recv(peer->fd, peer->request + peer->size, sizeof(peer->request) - 1 - peer->size, MSG_DONTWAIT);

	if (size < 0)
		return errno == EAGAIN || errno == EINTR;
	if (size == 0)
		return false;
	peer->size += (size_t)size;
	peer->request[peer->size] = '\0';
	if (!strstr(peer->request, "\r\n\r\n"))
		return peer->size + 1 < sizeof(peer->request);
	if (str_has_prefix(peer->request, "GET /metrics ") || str_has_prefix(peer->request, "GET / "))
		peer->asks = true;
	else
		return metrics_answer(peer, "404 Not Found", "The page is /metrics.\n") == 0;
	return true;
}

static bool metrics_write(struct metrics_peer *peer)
{
	size_t left = strlen(peer->answer) - peer->sent;
	ssize_t size = send(peer->fd, peer->answer + peer->sent, left, MSG_DONTWAIT | MSG_NOSIGNAL);

	if (size < 0)
		return errno == EAGAIN || errno == EINTR;
	peer->sent += (size_t)size;
	return peer->sent < strlen(peer->answer);
}

static void metrics_accept(struct metrics *metrics)
{
	_cleanup_close_ int fd = accept4(metrics->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0 || metrics->peer_count == METRICS_PEERS_MAX)
		return;
	metrics->peers[metrics->peer_count++] =
		(struct metrics_peer){.fd = steal_fd(&fd), .deadline = grpc_now() + METRICS_PEER_MS};
}

/* ---- kubelet ---- */

static void metrics_ask(struct metrics *metrics)
{
	uint8_t *request = frame_new(0);

	metrics->until = grpc_now() + METRICS_ASK_MS;
	if (!request || registration_new(METRICS_POD_RESOURCES, "/v1.PodResourcesLister/List", request, FRAME_HEAD,
					 &metrics->call) < 0)
		metrics->until = 0;
}

/* Everyone who asks by now has the same page. */
static void metrics_publish(struct metrics *metrics, const struct resources *resources, bool answered)
{
	_cleanup_free_ char *page = strdup("");
	size_t size = 0;
	const uint8_t *message = answered ? registration_answer(metrics->call, &size) : NULL;
	int r = page ? metrics_add_devices(&page, resources) : -ENOMEM;

	if (r == 0)
		r = metrics_add_pods(&page, resources, message, size);
	for (size_t i = metrics->peer_count; i-- > 0;)
		if (metrics->peers[i].asks && (r < 0 || metrics_answer(&metrics->peers[i], "200 OK", page) < 0))
			metrics_drop(metrics, i);
		else
			metrics->peers[i].asks = false;
	if (metrics->call)
		metrics->call = registration_free(metrics->call);
	metrics->until = 0;
}

static void metrics_go_on(struct metrics *metrics, const struct resources *resources, const struct waits *waits)
{
	enum registration_state state = REGISTRATION_FAILED;
	bool asked = false;

	for (size_t i = 0; i < metrics->peer_count; i++)
		asked = asked || metrics->peers[i].asks;
	if (!asked)
		return;
	if (!metrics->call)
		metrics_ask(metrics);
	if (metrics->call)
		state = registration_serve(metrics->call, waits_find(waits, registration_fd(metrics->call)));
	if (state != REGISTRATION_WAITS || grpc_now() >= metrics->until)
		metrics_publish(metrics, resources, state == REGISTRATION_DONE);
}

/* ---- the loop ---- */

void metrics_gather(const struct metrics *metrics, struct waits *waits)
{
	waits_add(waits, metrics->listener, POLLIN);
	for (size_t i = 0; i < metrics->peer_count; i++) {
		const struct metrics_peer *peer = &metrics->peers[i];

		waits_add(waits, peer->fd, peer->answer ? POLLOUT : peer->asks ? POLLRDHUP : POLLIN);
		waits_until(waits, peer->deadline);
	}
	if (!metrics->call)
		return;
	waits_add(waits, registration_fd(metrics->call), registration_events(metrics->call));
	waits_until(waits, metrics->until);
}

void metrics_serve(struct metrics *metrics, const struct resources *resources, const struct waits *waits)
{
	int64_t now = grpc_now();

	if (metrics->listener < 0)
		return;
	for (size_t i = metrics->peer_count; i-- > 0;) {
		struct metrics_peer *peer = &metrics->peers[i];
		short events = waits_find(waits, peer->fd);
		bool stays = peer->deadline > now && !(peer->asks && events);

		if (stays && peer->answer && events)
			stays = metrics_write(peer);
		else if (stays && !peer->asks && events)
			stays = metrics_read(peer);
		if (!stays)
			metrics_drop(metrics, i);
	}
	metrics_go_on(metrics, resources, waits);
	if (waits_find(waits, metrics->listener))
		metrics_accept(metrics);
}

void metrics_close(struct metrics *metrics)
{
	while (metrics->peer_count > 0)
		metrics_drop(metrics, metrics->peer_count - 1);
	if (metrics->call)
		metrics->call = registration_free(metrics->call);
	if (metrics->listener >= 0)
		(void)close(metrics->listener);
	metrics->listener = -1;
}
