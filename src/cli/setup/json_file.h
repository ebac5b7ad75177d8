/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * An engine's JSON file with our members in it, in the order, the indentation and the line ends that it has. A path is
 * names with '/' between them. An empty file is an object without members.
 */

#include <jansson.h>

#include "engines/text.h"

/** Return: 0; -EINVAL with @ret_error filled in, also if it is not an object; -ENOMEM. */
int json_file_check(const struct text *text, struct text_error *ret_error);

/** Return: 0 and a new reference; -ENOENT; -EINVAL; -ENOMEM. */
int json_file_find(const struct text *text, const char *path, json_t **ret);

/** The same as text, owned by the caller. */
int json_file_get(const struct text *text, const char *path, char **ret);

/**
 * json_file_put() - see to it that a member has this value
 * @value: stolen; NULL: take the member out, and the object that it was in if that is empty then
 *
 * Return: 0; -ENOTDIR if something on the path is not an object; -EINVAL; -ENOMEM.
 */
int json_file_put(struct text *text, const char *path, json_t *value);

/** The same with the value as text. */
int json_file_set(struct text *text, const char *path, const char *value);
