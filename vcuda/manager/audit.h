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

/**
 * audit_server() - write down what a server tells
 * @now: milliseconds
 *
 * Nothing in it is trusted. Of lines above MANAGER_LINES in a second, there is only their number, before the next one.
 */
void audit_server(struct tenant *tenant, const struct start_event *event, int64_t now);

/** Writes down how many lines were left out since this was said last, if any. */
void audit_tell_omitted(struct tenant *tenant);
