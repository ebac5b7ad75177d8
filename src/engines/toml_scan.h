/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Where the tables and keys of a TOML file are (toml.io, version 1.0). */

#include "engines/text.h"

enum toml_kind {
	TOML_TABLE, /* a header */
	TOML_KEY,
};

struct toml_entry {
	enum toml_kind kind;
	char *path;
	size_t table;           /* how much of the path the header above says */
	size_t line, line_end;  /* of the lines that it is on; the newline is inside */
	size_t start, value, end;
	bool inside;            /* an inline table */
	bool again;             /* an array's table, of which there are more */
};

struct toml {
	struct toml_entry *entries;
	size_t count;
};

void toml_clear(struct toml *toml);
#define _cleanup_toml_ __attribute__((cleanup(toml_clear)))

/** Return: 0; -EINVAL with @ret_error filled in; -ENOMEM. */
int toml_scan(const struct text *text, struct toml *ret, struct text_error *ret_error);

/** The key or the header that has this path; NULL if there is none. */
const struct toml_entry *toml_find(const struct toml *toml, enum toml_kind kind, const char *path);

/** Whether @path is below @above, or the same if @itself; everything is below "". */
bool toml_is_below(const char *path, const char *above, bool itself);
