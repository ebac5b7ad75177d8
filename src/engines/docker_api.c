/* SPDX-License-Identifier: Apache-2.0 */

#include "engines/engine.h"

#include <errno.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/str.h"
#include "engines/daemon.h"
#include "engines/text.h"

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

int docker_api_ask(const struct daemon *daemon, const char *what, json_t **ret)
{
	_cleanup_text_buffer_ struct text_buffer answer = {0};
	_cleanup_free_ char *path = NULL;
	int r = docker_api_find_socket(daemon, &path);

	r = r == -ENOENT ? -ENOTCONN : r < 0 ? r : daemon_http_get(path, what, &answer);
	if (r == 0)
		r = json_parse(answer.data, answer.size, ret, NULL);
	return r == -EINVAL ? -EPROTO : r;
}

json_t *docker_api_get(const struct daemon *daemon, const char *what)
{
	json_t *json = NULL;

	return docker_api_ask(daemon, what, &json) == 0 ? json : NULL;
}

int docker_api_check_access(const struct daemon *daemon)
{
	_cleanup_free_ char *path = NULL;
	_cleanup_close_ int fd = -1;
	int r = docker_api_find_socket(daemon, &path);

	if (r < 0)
		return r;
	fd = fd_connect(path);
	return fd < 0 ? fd : 0;
}
