/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * An engine's TOML file with our keys in it: a value over another, a line below a table's header, or tables of our own
 * between two marked lines behind everything else. Everything else stays as its author wrote it. Paths are those of
 * toml_text.h.
 */

#include <stdio.h>

#include "engines/text.h"

/* What finds no place in the tables that are there waits for toml_file_finish(). */
struct toml_file {
	struct text *text;
	FILE *waiting;
	char *lines; /* of @waiting, from open_memstream(3) */
	size_t size;
	char *table; /* of the last of them */
};

void toml_file_clear(struct toml_file *file);
#define _cleanup_toml_file_ __attribute__((cleanup(toml_file_clear)))

/**
 * toml_file_put() - see to it that a key of a table has this value
 * @table: path; "" for the file's own keys
 * @value: as it is to be written
 *
 * Keys of a table that is not there have to come one behind the other.
 *
 * Return: 0; -ENOTDIR if the table cannot be added to; -EINVAL; -ENOMEM.
 */
int toml_file_put(struct toml_file *file, const char *table, const char *key, const char *value);

/**
 * toml_file_copy() - put the lines of one table's own keys into another that is not there yet
 * @source: where the table is; it may be the text that is edited
 * @but:    keys that are left out; NULL-terminated
 *
 * Return: as toml_file_put().
 */
int toml_file_copy(struct toml_file *file, const struct text *source, const char *from, const char *to,
		   const char *const *but);

/** Appends what waits. Return: 0; -ENOTDIR if a table is written in a way that cannot be added to; -ENOMEM. */
int toml_file_finish(struct toml_file *file);

/**
 * Puts @value over that of a key, or takes the key out if it is NULL; nothing if the key is missing. Return: 0;
 * -EINVAL; -ENOMEM.
 */
int toml_file_set(struct text *text, const char *path, const char *value);

/**
 * toml_file_cut() - take out the marked lines and what is between them
 * @known: a text that has them as we wrote them; NULL: take out whatever somebody has made of them
 *
 * Return: 0; 1 if some stay, since somebody has changed them; -ENOMEM.
 */
int toml_file_cut(struct text *text, const struct text *known);

/** Takes out the key or the tables at a path, and what is below it, but no comments. Return: 0; -EINVAL; -ENOMEM. */
int toml_file_remove(struct text *text, const char *path);
