/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* One question to a Docker daemon, over its socket. */

#include <jansson.h>

#include "engines/daemon.h"

/**
 * docker_api_get() - ask for something such as "/version"
 * @daemon: one that was found; asking another could start one that a service manager starts on demand
 *
 * Return: the answer, a new reference; NULL if there was none within two seconds, for whatever reason.
 */
json_t *docker_api_get(const struct daemon *daemon, const char *what);

/** Whether whoever asks may connect to it. Return: 0; -EACCES, -ENOENT, … */
int docker_api_open(const struct daemon *daemon);
