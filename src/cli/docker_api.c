/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/docker_api.h"

#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include "cli/cleanup.h"
#include "cli/text.h"

enum {
	ANSWER_MAX = 1024 * 1024,
	TIMEOUT_S = 2,
};

static int open_socket(const char *path)
{
	const struct timeval timeout = {.tv_sec = TIMEOUT_S};
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd;

	if (strlen(path) >= sizeof(address.sun_path))
		return -1;
	(void)strcpy(address.sun_path, path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -1;
	if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout)) == 0 &&
	    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout)) == 0 &&
	    connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0)
		return fd;
	(void)close(fd);
	return -1;
}

/* HTTP/1.0, so that the answer is neither chunked nor followed by another. */
static bool ask(int fd, const char *what)
{
	_cleanup_free_ char *question = text_format("GET %s HTTP/1.0\r\nHost: docker\r\n\r\n", what);
	size_t size = question ? strlen(question) : 0;

	return size && send(fd, question, size, MSG_NOSIGNAL) == (ssize_t)size;
}

static json_t *read_answer(int fd)
{
	_cleanup_free_ char *answer = malloc(ANSWER_MAX + 1);
	const char *body;
	size_t size = 0;
	ssize_t got;

	if (!answer)
		return NULL;
	while (size < ANSWER_MAX && (got = recv(fd, answer + size, ANSWER_MAX - size, 0)) != 0) {
		if (got < 0)
			return NULL;
		size += (size_t)got;
	}
	answer[size] = '\0';
	body = strstr(answer, "\r\n\r\n");
	if (!body || strncmp(answer, "HTTP/1.", 7) != 0 || strncmp(answer + 8, " 200 ", 5) != 0)
		return NULL;
	body += 4;
	return json_loadb(body, size - (size_t)(body - answer), 0, NULL);
}

json_t *docker_api_get(const char *socket, const char *what)
{
	_cleanup_close_ int fd = open_socket(socket);

	return fd >= 0 && ask(fd, what) ? read_answer(fd) : NULL;
}
