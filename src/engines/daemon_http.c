/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One GET of HTTP/1.0: the answer ends with the connection, and comes in one piece (RFC 1945; servers may not answer
 * 1.0 in chunks).
 */

#include "engines/daemon.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "engines/text.h"

enum {
	PATIENCE_MS = 2000,
	ANSWER_MAX = 1024 * 1024,
};

/* Return: the bytes there are when the connection ends; -1 if it does not end in time. */
static ssize_t daemon_http_receive(int fd, char *answer)
{
	const int64_t end = clock_now_ms() + PATIENCE_MS;
	size_t size = 0;
	ssize_t length;

	while (size < ANSWER_MAX) {
		struct pollfd input = {.fd = fd, .events = POLLIN};
		int64_t left = end - clock_now_ms();

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

static bool daemon_http_is_success(const char *answer)
{
	return str_has_prefix(answer, "HTTP/1.0 200 ") || str_has_prefix(answer, "HTTP/1.1 200 ");
}

static bool daemon_http_ask(int fd, const char *what)
{
	_cleanup_free_ char *request = NULL;
	ssize_t size = 0;

	if (str_format(&request, "GET %s HTTP/1.0\r\nHost: localhost\r\n\r\n", what) < 0)
		return false;
	size = (ssize_t)strlen(request);
	return send(fd, request, (size_t)size, MSG_NOSIGNAL | MSG_DONTWAIT) == size;
}

bool daemon_http_get(const char *path, const char *what, struct text_buffer *ret)
{
	_cleanup_close_ int fd = fd_connect(path);
	_cleanup_free_ char *answer = fd < 0 || !daemon_http_ask(fd, what) ? NULL : malloc(ANSWER_MAX + 1);
	ssize_t size = answer ? daemon_http_receive(fd, answer) : -1;
	const char *body;

	if (size < 0)
		return false;
	answer[size] = '\0';
	body = strstr(answer, "\r\n\r\n");
	if (!daemon_http_is_success(answer) || !body)
		return false;
	body += strlen("\r\n\r\n");
	return text_buffer_set(ret, body, (size_t)(answer + size - body)) == 0;
}
