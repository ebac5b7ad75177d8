/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a TOML file says (toml.io, version 1.0), and where. A path is names with '/' between them, whatever way the file
 * has of saying so: headers, dotted keys, inline tables.
 */

#include <jansson.h>

#include "engines/text.h"

/* A header or a key. */
struct toml_entry {
	const json_t *table; /* the header's, or the one that the key is in */
	char *key;           /* NULL: a header, or a table that dotted keys began */
	const json_t *value;
	size_t line, line_end; /* of the lines that it is on; the newline is inside */
	size_t start, value_start, end;
	bool header;
	bool inside; /* an inline table or an array */
};

struct toml {
	json_t *root; /* as JSON; dates and numbers in a notation of TOML's own as strings */
	struct toml_entry *entries;
	size_t count;
};

void toml_text_clear(struct toml *toml);
#define _cleanup_toml_ __attribute__((cleanup(toml_text_clear)))

/** Return: 0; -EINVAL with @ret_error filled in; -ENOMEM. */
int toml_text_scan(const struct text *text, struct toml *ret, struct text_error *ret_error);

/** The same for whoever only wants to know whether it is valid. */
int toml_text_check(const struct text *text, struct text_error *ret_error);

/** Return: what is at @path, borrowed; NULL. @ret_above: the last on the way that there is; may be NULL. */
json_t *toml_text_walk(const struct toml *toml, const char *path, json_t **ret_above);

/** Return: the key at @path, or the header of that table, which may be missing though there is such a table; NULL. */
const struct toml_entry *toml_text_find(const struct toml *toml, const char *path, bool header);

/** Return: 0 and the value as it is written, owned by the caller; -ENOENT; -EINVAL if @text is not valid; -ENOMEM. */
int toml_text_get(const struct text *text, const char *path, char **ret);

/** The same for a string, without its quotes; -ENOENT also if it is something else. */
int toml_text_get_string(const struct text *text, const char *path, char **ret);

/** Return: 0 and the value as JSON, a new reference; -ENOENT; -EINVAL if @text is not valid; -ENOMEM. */
int toml_text_read(const struct text *text, const char *path, json_t **ret);

/** Whether the file says anything about @path or what is below it. */
bool toml_text_mentions(const struct text *text, const char *path);
