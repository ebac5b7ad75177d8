/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a TOML file says (toml.io, version 1.0), and where, whatever way the file has of saying so: headers, dotted
 * keys, inline tables.
 */

#include <jansson.h>

#include "engines/buffer.h"

/* A header or a key. */
struct toml_entry {
	const json_t *table;      /* the header's, or the one that the key is in */
	char *key;                /* NULL: a header, or a table that dotted keys began */
	const json_t *value;      /* of a key, if that is an inline table or an array */
	size_t line, end_of_line; /* of the lines that it is on; the newline is inside */
	size_t start, value_start, value_end;
	bool header;
	bool inside; /* an inline table or an array */
};

struct toml {
	json_t *root; /* null stands for what JSON has no value for: dates, infinity */
	struct toml_entry *entries;
	size_t count;
};

void toml_parse_clear(struct toml *toml);
#define _cleanup_toml_ __attribute__((cleanup(toml_parse_clear)))

/** Return: 0; -EINVAL with @ret_error filled in; -ENOMEM. */
int toml_parse_scan(const struct text_buffer *text, struct toml *ret, struct text_buffer_error *ret_error);

/** The same as JSON alone, without the places in the text. */
int toml_parse_read(const struct text_buffer *text, json_t **ret, struct text_buffer_error *ret_error);

/** Return: a key of a table or, if it is NULL, the table's header, which may be missing; NULL. */
const struct toml_entry *toml_parse_find(const struct toml *toml, const json_t *table, const char *key);
