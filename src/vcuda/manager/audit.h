/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What an administrator can look up later: a line of JSON on standard error for each event. It tells who got what and
 * what was refused, and no arguments and no data of programs.
 */

#include <jansson.h>

#include "vcuda/manager/manager.h"

/** Writes a line about a container; takes @more, an object or NULL. @tenant may be NULL. */
void audit_write(const char *event, const struct tenant *tenant, json_t *more);

/** Writes down what a server tells. Nothing in it is trusted. */
void audit_server(const struct tenant *tenant, const struct start_event *event);
