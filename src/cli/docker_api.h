/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* One question to a Docker daemon, over its socket. */

#include <jansson.h>

/**
 * docker_api_get() - ask for something such as "/version"
 * @socket: path of a Unix socket
 *
 * Return: the answer, a new reference; NULL if there was none within two seconds.
 */
json_t *docker_api_get(const char *socket, const char *what);
