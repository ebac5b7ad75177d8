/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The text of an engine's configuration file: its bytes, and what JSON and TOML say in it. */

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* ---- buffer ---- */

/*
 * The bytes of a configuration file that is being edited. An editor keeps every byte that is not its own. So the file
 * is as it was when the editor has taken its own bytes out again.
 */

/* {0} is empty. There is a NUL behind the last byte; others may be inside. */
struct text_buffer {
	char *data;
	size_t size;
};

/* Where the parser of a format stopped, and why. */
struct text_buffer_error {
	size_t line, column; /* from 1 */
	char reason[160];
};

void text_buffer_clear(struct text_buffer *text);
#define _cleanup_text_buffer_ __attribute__((cleanup(text_buffer_clear)))

/** Return: 0 and a copy, or -ENOMEM. */
int text_buffer_set(struct text_buffer *text, const char *data, size_t size);

/** The same of another text, which may be without data. */
int text_buffer_copy(struct text_buffer *text, const struct text_buffer *from);

/** Whether both have the same bytes, or none. */
bool text_buffer_is_same(const struct text_buffer *a, const struct text_buffer *b);

/** Puts @insert in the place of @remove bytes at @at, which are inside. Return: 0 or -ENOMEM with @text untouched. */
int text_buffer_splice(struct text_buffer *text, size_t at, size_t remove, const char *insert, size_t insert_size);

/** Whether the bytes at @at, which may be outside, are these. */
bool text_buffer_is_at(const struct text_buffer *text, size_t at, const char *bytes, size_t size);

/** Return: how the file ends its lines, by its first one: "\r\n" or "\n". */
const char *text_buffer_newline(const struct text_buffer *text);

/** Return: the size of a UTF-8 byte order mark at the start, 0 or 3. */
size_t text_buffer_bom(const struct text_buffer *text);

/** Says in @ret_error what is wrong at the byte at @at. Return: -EINVAL. */
int text_buffer_refuse(const struct text_buffer *text, size_t at, const char *reason,
		       struct text_buffer_error *ret_error);

/** Return: a new string, owned by the caller; NULL without memory. */
char *text_buffer_format(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- json file ---- */

/* What an engine's JSON file says, and what it is to say. dockerd takes an empty file for an object without members. */

/** Return: 0 and an object; -EINVAL with @ret_error filled in, also if it is something else; -ENOMEM. */
int json_file_read(const struct text_buffer *text, json_t **ret, struct text_buffer_error *ret_error);

/** Has a text say this, in the order, the indentation and the line ends that it has. Return: 0 or -ENOMEM. */
int json_file_write(struct text_buffer *text, const json_t *wanted);

/* ---- toml parse ---- */

/*
 * What a TOML file says (toml.io, version 1.0), and where, whatever way the file has of saying so: headers, dotted
 * keys, inline tables.
 */

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

/* ---- toml edit ---- */

/*
 * Edits an engine's TOML file in such a way that the edits can be taken out again. A line of ours ends in
 * "# ctr-gpu setup". A line of the file's author that must not count gets "# ctr-gpu setup: " before it. New tables are
 * between two marked lines at the end of the file.
 */

/**
 * toml_edit_write() - take out what was written earlier, and put in what is missing
 * @text: without data, not even empty, if the file does not exist
 *
 * Some settings cannot be added to what is there, such as a table below an inline table. The new text is then invalid
 * or means something else, so the caller parses it again.
 *
 * Return: 0; -EINVAL if the text is not valid; -ENOMEM.
 */
int toml_edit_write(struct text_buffer *text, json_t *wanted);

enum toml_edit_undo {
	TOML_EDIT_RESTORE,     /* the text is as its author wrote it */
	TOML_EDIT_KEEP_TABLES, /* but for what is between the marked lines, which stays with them */
	TOML_EDIT_FORGET,      /* lines that do not count go, too */
};

enum toml_edit_undone { TOML_EDIT_NOTHING, TOML_EDIT_DONE, TOML_EDIT_TABLES_STAY };

/**
 * Takes out all that is marked as toml_edit_write() marks it. Without data, the file itself was written by it, and has
 * nothing else.
 */
enum toml_edit_undone toml_edit_undo(struct text_buffer *text, enum toml_edit_undo how);
