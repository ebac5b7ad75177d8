/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * TOML as its author wrote it, comments and all: a value is put over another, a line below a table's header, or tables of
 * our own, between two marked lines, behind everything else. The journal of such edits is what undoing needs.
 *
 * A path is names with '/' between them, whatever way the file has of saying so: headers, dotted keys, inline tables. A '/'
 * in a name is "~1", and the tables of an array are "name[0]", "name[1]".
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

/* Edits on their way: what finds no place in the tables that are there waits for toml_text_finish(). */
struct toml_edit {
	struct text *text;
	json_t *journal;
	struct text waiting;
	char *table; /* of the last line that waits */
};

void toml_edit_clear(struct toml_edit *edit);
#define _cleanup_toml_edit_ __attribute__((cleanup(toml_edit_clear)))

/**
 * toml_text_put() - see to it that a key of a table has this value
 * @table: path; "" for the file's own keys
 * @value: as it is to be written
 *
 * Keys of a table that is not there have to come one behind the other.
 *
 * Return: 0; -ENOTDIR if the table is written in a way that cannot be added to; -EINVAL; -ENOMEM.
 */
int toml_text_put(struct toml_edit *edit, const char *table, const char *key, const char *value);

/**
 * toml_text_copy() - put the lines of one table's own keys into another that is not there yet
 * @source: where the table is; it may be the text that is edited
 * @but:    keys that are left out; NULL-terminated
 *
 * Return: as toml_text_put().
 */
int toml_text_copy(struct toml_edit *edit, const struct text *source, const char *from, const char *to, const char *const *but);

/** Appends what waits. Return: 0 or -ENOMEM. */
int toml_text_finish(struct toml_edit *edit);

/**
 * toml_text_undo() - take an edit back; the last one first
 *
 * Return: 0, also if nothing of it is left; 1 if somebody has changed it, and it stays; -EINVAL if this is no edit; -ENOMEM.
 */
int toml_text_undo(struct text *text, const json_t *edit);

/** Takes out what is between the marked lines, whoever put it there. Return: 0 or -ENOMEM. */
int toml_text_forget(struct text *text);

/** Takes out the key or the tables at a path, and what is below it, but no comments. Return: 0; -EINVAL; -ENOMEM. */
int toml_text_remove_tables(struct text *text, const char *path);
