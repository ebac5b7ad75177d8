/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <jansson.h>

/**
 * http_get_json() - ask a service on this machine
 * @socket_path: of a unix socket
 * @target:      "/version"
 *
 * Waits a second at most. Return: the answer's JSON; NULL if there is none, for whatever reason.
 */
json_t *http_get_json(const char *socket_path, const char *target);
