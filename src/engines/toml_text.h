/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a TOML file says. A path is names with '/' between them, whatever way the file has of saying so: headers, dotted keys,
 * inline tables. In a name '/' is "~1" and '[' is "~2"; the tables of an array are "name[0]", "name[1]".
 */

#include <jansson.h>

#include "engines/text.h"

/** Return: 0; -EINVAL with @ret_error filled in; -ENOMEM. */
int toml_text_check(const struct text *text, struct text_error *ret_error);

/** Return: 0 and the value as it is written, owned by the caller; -ENOENT; -EINVAL if @text is not valid; -ENOMEM. */
int toml_text_get(const struct text *text, const char *path, char **ret);

/** The same for a string, without its quotes; -ENOENT also if it is something else. */
int toml_text_get_string(const struct text *text, const char *path, char **ret);

/** The same for an array of strings: a new reference. */
int toml_text_get_list(const struct text *text, const char *path, json_t **ret);

/** Whether the file says anything about @path or what is below it. */
bool toml_text_mentions(const struct text *text, const char *path);

/** Whether it says nothing about what is below @path. */
bool toml_text_is_empty(const struct text *text, const char *path);
