/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One GET of HTTP/1.0 on a unix socket: the answer ends with the connection, and comes in one piece (RFC 1945; servers may not
 * answer 1.0 in chunks).
 */

#include "doctor/http.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/str.h"

enum {
	PATIENCE_MS = 1000,
	ANSWER_MAX = 512 * 1024,
};

static int connect_to(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd;

	if (strlen(path) >= sizeof(address.sun_path))
		return -1;
	memcpy(address.sun_path, path, strlen(path));
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	/* A full queue is EAGAIN: whoever listens does not answer. */
	if (fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0)
		return fd;
	cleanup_closep(&fd);
	return -1;
}

static long left_ms(const struct timespec *start)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return PATIENCE_MS - ((now.tv_sec - start->tv_sec) * 1000 + (now.tv_nsec - start->tv_nsec) / 1000000);
}

/* Return: the bytes there are when the connection ends; -1 if it does not end in time. */
static ssize_t receive(int fd, char *answer)
{
	struct timespec start;
	size_t size = 0;
	ssize_t length;

	(void)clock_gettime(CLOCK_MONOTONIC, &start);
	while (size < ANSWER_MAX) {
		struct pollfd input = {.fd = fd, .events = POLLIN};
		long left = left_ms(&start);

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

static bool is_success(const char *answer)
{
	return (str_has_prefix(answer, "HTTP/1.0 200 ") || str_has_prefix(answer, "HTTP/1.1 200 "));
}

json_t *http_get_json(const char *socket_path, const char *target)
{
	_cleanup_close_ int fd = connect_to(socket_path);
	_cleanup_free_ char *request = NULL, *answer = malloc(ANSWER_MAX + 1);
	json_t *json = NULL;
	const char *body;
	ssize_t size;

	if (fd < 0 || !answer || str_format(&request, "GET %s HTTP/1.0\r\nHost: localhost\r\n\r\n", target) < 0)
		return NULL;
	if (send(fd, request, strlen(request), MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)strlen(request))
		return NULL;
	size = receive(fd, answer);
	if (size < 0)
		return NULL;
	answer[size] = '\0';
	body = strstr(answer, "\r\n\r\n");
	if (!is_success(answer) || !body)
		return NULL;
	body += strlen("\r\n\r\n");
	return json_parse(body, (size_t)(answer + size - body), &json, NULL) == 0 ? json : NULL;
}
