/* SPDX-License-Identifier: Apache-2.0 */

#include "base/metrics_page.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/str.h"

#define METRICS_PAGE_LOOPBACK "127.0.0.1:"

enum { METRICS_PAGE_BACKLOG = 8, METRICS_PAGE_PEER_MS = 5000 };

/* ---- where ---- */

static int metrics_page_listen_unix(const char *path, int *ret)
{
	_cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct stat st;

	if (fd < 0)
		return -errno;
	if (strlen(path) >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	memcpy(address.sun_path, path, strlen(path) + 1);
	/* What an earlier process has left; any other file was named by mistake, and bind(2) refuses it. */
	if (lstat(path, &st) == 0 && S_ISSOCK(st.st_mode) && unlink(path) < 0)
		return -errno;
	if (bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 || listen(fd, METRICS_PAGE_BACKLOG) < 0)
		return -errno;
	*ret = steal_fd(&fd);
	return 0;
}

static int metrics_page_listen_loopback(const char *port, int *ret)
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
	if (bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 || listen(fd, METRICS_PAGE_BACKLOG) < 0)
		return -errno;
	*ret = steal_fd(&fd);
	return 0;
}

int metrics_page_open(const char *where, struct metrics_page *ret)
{
	*ret = (struct metrics_page){.listener = -1};
	if (where[0] == '/')
		return metrics_page_listen_unix(where, &ret->listener);
	if (str_has_prefix(where, METRICS_PAGE_LOOPBACK))
		return metrics_page_listen_loopback(where + strlen(METRICS_PAGE_LOOPBACK), &ret->listener);
	return -EINVAL;
}

/* ---- the page ---- */

void metrics_page_print_label(FILE *page, const char *before, const char *value)
{
	(void)fprintf(page, "%s=\"", before);
	for (; *value; value++) {
		if (*value == '"' || *value == '\\')
			(void)putc('\\', page);
		if ((unsigned char)*value >= ' ')
			(void)putc(*value, page);
	}
	(void)putc('"', page);
}

/* ---- peers ---- */

static void metrics_page_drop(struct metrics_page *page, size_t number)
{
	struct metrics_peer *peer = &page->peers[number];

	(void)close(peer->fd);
	free(peer->answer);
	*peer = page->peers[--page->peer_count];
}

static int metrics_page_answer(struct metrics_peer *peer, const char *status, const char *text)
{
	return str_format(&peer->answer,
			  "HTTP/1.1 %s\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: %zu\r\n"
			  "Connection: close\r\n\r\n%s",
			  status, strlen(text), text);
}

/* Return: whether the peer stays. */
static bool metrics_page_read(struct metrics_peer *peer)
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
		return metrics_page_answer(peer, "404 Not Found", "The page is /metrics.\n") == 0;
	return true;
}

static bool metrics_page_write(struct metrics_peer *peer)
{
	size_t left = strlen(peer->answer) - peer->sent;
	ssize_t size = send(peer->fd, peer->answer + peer->sent, left, MSG_DONTWAIT | MSG_NOSIGNAL);

	if (size < 0)
		return errno == EAGAIN || errno == EINTR;
	peer->sent += (size_t)size;
	return peer->sent < strlen(peer->answer);
}

/* A peer that says nothing goes before one that reads nothing, and of two of a kind the one that came first. */
static bool metrics_page_goes_first(const struct metrics_peer *peer, const struct metrics_peer *other)
{
	return !peer->answer == !other->answer ? peer->deadline < other->deadline : !peer->answer;
}

/* Slow peers keep no other from the page. Return: whether there is room. */
static bool metrics_page_make_room(struct metrics_page *page)
{
	size_t first = page->peer_count;

	if (page->peer_count < METRICS_PAGE_PEERS)
		return true;
	for (size_t i = 0; i < page->peer_count; i++)
		if (!page->peers[i].asks &&
		    (first == page->peer_count || metrics_page_goes_first(&page->peers[i], &page->peers[first])))
			first = i;
	if (first == page->peer_count)
		return false;
	metrics_page_drop(page, first);
	return true;
}

static void metrics_page_accept(struct metrics_page *page, int64_t now)
{
	_cleanup_close_ int fd = accept4(page->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0 || !metrics_page_make_room(page))
		return;
	page->peers[page->peer_count++] =
		(struct metrics_peer){.fd = steal_fd(&fd), .deadline = now + METRICS_PAGE_PEER_MS};
}

bool metrics_page_is_asked(const struct metrics_page *page)
{
	for (size_t i = 0; i < page->peer_count; i++)
		if (page->peers[i].asks)
			return true;
	return false;
}

void metrics_page_publish(struct metrics_page *page, const char *text)
{
	for (size_t i = page->peer_count; i-- > 0;)
		if (page->peers[i].asks && (!text || metrics_page_answer(&page->peers[i], "200 OK", text) < 0))
			metrics_page_drop(page, i);
		else
			page->peers[i].asks = false;
}

short metrics_page_events(const struct metrics_peer *peer)
{
	/* A peer may close its side when it has asked. That it has gone is told by POLLHUP, or by send(2). */
	return peer->answer ? POLLOUT : peer->asks ? 0 : POLLIN;
}

void metrics_page_serve(struct metrics_page *page, short (*happened)(const void *waits, int fd), const void *waits,
			int64_t now)
{
	if (page->listener < 0)
		return;
	for (size_t i = page->peer_count; i-- > 0;) {
		struct metrics_peer *peer = &page->peers[i];
		const short events = happened(waits, peer->fd);
		bool stays = peer->deadline > now && !(peer->asks && events);

		if (stays && peer->answer && events)
			stays = metrics_page_write(peer);
		else if (stays && !peer->asks && events)
			stays = metrics_page_read(peer);
		if (!stays)
			metrics_page_drop(page, i);
	}
	if (happened(waits, page->listener))
		metrics_page_accept(page, now);
}

void metrics_page_close(struct metrics_page *page)
{
	while (page->peer_count > 0)
		metrics_page_drop(page, page->peer_count - 1);
	if (page->listener >= 0)
		(void)close(page->listener);
	page->listener = -1;
}
