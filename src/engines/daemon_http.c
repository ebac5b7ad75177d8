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
	ANSWER_MAX = 16 * 1024 * 1024, /* a list of some thousand containers */
	PART = 64 * 1024,
};

/* Return: 0, with the bytes there are when the connection ends, and a NUL behind them; negative errno. */
static int daemon_http_receive(int fd, char **ret, size_t *ret_size)
{
	const int64_t end = clock_now_ms() + PATIENCE_MS;
	_cleanup_free_ char *answer = NULL;
	size_t size = 0, room = 0;

	for (;;) {
		struct pollfd input = {.fd = fd, .events = POLLIN};
		const int64_t left = end - clock_now_ms();
		ssize_t length;

		if (left <= 0 || poll(&input, 1, (int)left) == 0)
			return -ETIMEDOUT;
		if (room - size < 2) {
			char *longer = room < ANSWER_MAX ? realloc(answer, room ? 2 * room : PART) : NULL;

			if (!longer)
				return room < ANSWER_MAX ? -ENOMEM : -EFBIG;
			room = room ? 2 * room : PART;
			answer = longer;
		}
		length = recv(fd, answer + size, room - size - 1, MSG_DONTWAIT);
		if (length == 0)
			break;
		if (length < 0 && errno != EINTR && errno != EAGAIN)
			return -errno;
		size += length > 0 ? (size_t)length : 0;
	}
	answer[size] = '\0';
	*ret = steal_ptr(answer);
	*ret_size = size;
	return 0;
}

static int daemon_http_check(const char *answer)
{
	char *end;
	long code;

	if (!str_has_prefix(answer, "HTTP/1.0 ") && !str_has_prefix(answer, "HTTP/1.1 "))
		return -EPROTO;
	code = strtol(answer + strlen("HTTP/1.1 "), &end, 10);
	if (*end != ' ')
		return -EPROTO;
	switch (code) {
	case 200:
		return 0;
	case 404:
		return -ENOENT;
	case 401:
	case 403:
		return -EACCES;
	default:
		return -EPROTO;
	}
}

static int daemon_http_ask(int fd, const char *what)
{
	_cleanup_free_ char *request = NULL;
	ssize_t size, sent;

	if (str_format(&request, "GET %s HTTP/1.0\r\nHost: localhost\r\n\r\n", what) < 0)
		return -ENOMEM;
	size = (ssize_t)strlen(request);
	sent = send(fd, request, (size_t)size, MSG_NOSIGNAL | MSG_DONTWAIT);
	return sent < 0 ? -errno : sent < size ? -EAGAIN : 0;
}

int daemon_http_get(const char *path, const char *what, struct text_buffer *ret)
{
	_cleanup_close_ int fd = fd_connect(path);
	_cleanup_free_ char *answer = NULL;
	size_t size = 0;
	const char *body;
	int r = fd == -ENOENT ? -ENOTCONN : fd < 0 ? fd : daemon_http_ask(fd, what);

	if (r == 0)
		r = daemon_http_receive(fd, &answer, &size);
	if (r == 0)
		r = daemon_http_check(answer);
	if (r < 0)
		return r;
	body = strstr(answer, "\r\n\r\n");
	if (!body)
		return -EPROTO;
	body += strlen("\r\n\r\n");
	return text_buffer_set(ret, body, (size_t)(answer + size - body));
}
