/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One GET of HTTP/1.0 on a unix socket: the answer ends with the connection, and comes in one piece (RFC 1945; servers
 * may not answer 1.0 in chunks).
 */

#include "engines/engine.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/str.h"
#include "engines/daemon.h"

enum {
	PATIENCE_MS = 2000,
	ANSWER_MAX = 1024 * 1024,
};

static long docker_api_left_ms(const struct timespec *start)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return PATIENCE_MS - ((now.tv_sec - start->tv_sec) * 1000 + (now.tv_nsec - start->tv_nsec) / 1000000);
}

/* Return: the bytes there are when the connection ends; -1 if it does not end in time. */
static ssize_t docker_api_receive(int fd, char *answer)
{
	struct timespec start;
	size_t size = 0;
	ssize_t length;

	(void)clock_gettime(CLOCK_MONOTONIC, &start);
	while (size < ANSWER_MAX) {
		struct pollfd input = {.fd = fd, .events = POLLIN};
		long left = docker_api_left_ms(&start);

		if (left <= 0 || poll(&input, 1, (int)left) == 0)
			return -1;
		length = recv(fd, answer + size, ANSWER_MAX - size, MSG_DONTWAIT);
		if (length == 0)
			return (ssize_t)size;
		if (length < 0 && errno != EINTR && errno != EAGAIN)
			return -1;
		size += length > 0 ? (size_t)length : 0;
	}
	return -1;
}

static bool docker_api_is_success(const char *answer)
{
	return str_has_prefix(answer, "HTTP/1.0 200 ") || str_has_prefix(answer, "HTTP/1.1 200 ");
}

/* Where dockerd listens unless it is told otherwise (its rootless mode: in its user's runtime directory). */
static int docker_api_find_socket(const struct daemon *daemon, char **ret)
{
	const struct daemon_kind *kind = &engine_docker.daemon;
	const char *path = daemon_socket_path(kind, daemon), *run = daemon_variable(daemon, "XDG_RUNTIME_DIR");

	if (path && (daemon->uid == 0 || path != kind->socket))
		return str_format(ret, "%s", path);
	if (daemon->uid == 0)
		return -ENOENT;
	return run ? str_format(ret, "%s/docker.sock", run)
		   : str_format(ret, "/run/user/%u/docker.sock", (unsigned)daemon->uid);
}

static bool docker_api_ask(int fd, const char *what)
{
	_cleanup_free_ char *request = NULL;
	ssize_t size = 0;

	if (str_format(&request, "GET %s HTTP/1.0\r\nHost: docker\r\n\r\n", what) < 0)
		return false;
	size = (ssize_t)strlen(request);
	return send(fd, request, (size_t)size, MSG_NOSIGNAL | MSG_DONTWAIT) == size;
}

json_t *docker_api_get(const struct daemon *daemon, const char *what)
{
	_cleanup_free_ char *socket_path = NULL, *answer = NULL;
	_cleanup_close_ int fd = -1;
	json_t *json = NULL;
	const char *body;
	ssize_t size;

	if (docker_api_find_socket(daemon, &socket_path) < 0)
		return NULL;
	fd = daemon_socket_connect(socket_path);
	answer = fd < 0 || !docker_api_ask(fd, what) ? NULL : malloc(ANSWER_MAX + 1);
	size = answer ? docker_api_receive(fd, answer) : -1;
	if (size < 0)
		return NULL;
	answer[size] = '\0';
	body = strstr(answer, "\r\n\r\n");
	if (!docker_api_is_success(answer) || !body)
		return NULL;
	body += strlen("\r\n\r\n");
	return json_parse(body, (size_t)(answer + size - body), &json, NULL) == 0 ? json : NULL;
}

int docker_api_open(const struct daemon *daemon)
{
	_cleanup_free_ char *path = NULL;
	_cleanup_close_ int fd = -1;
	int r = docker_api_find_socket(daemon, &path);

	if (r < 0)
		return r;
	fd = daemon_socket_connect(path);
	return fd < 0 ? fd : 0;
}
