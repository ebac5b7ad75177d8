/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The bytes of a configuration file that is being edited. Whoever edits keeps every byte that is not its own, so that
 * taking its own out again gives the file back as it was.
 */

#include <stdbool.h>
#include <stddef.h>

/* {0} is empty. There is a NUL behind the last byte; others may be inside. */
struct text {
	char *data;
	size_t size;
};

/* Where the parser of a format stopped, and why. */
struct text_error {
	size_t line, column; /* from 1 */
	char reason[160];
};

void text_clear(struct text *text);
#define _cleanup_text_ __attribute__((cleanup(text_clear)))

/** Return: 0 and a copy, or -ENOMEM. */
int text_set(struct text *text, const char *data, size_t size);

/** Whether both have the same bytes, or none. */
bool text_is_same(const struct text *a, const struct text *b);

/** Puts @insert in the place of @remove bytes at @at, which are inside. Return: 0 or -ENOMEM with @text untouched. */
int text_splice(struct text *text, size_t at, size_t remove, const char *insert, size_t insert_size);

/** Whether the bytes at @at, which may be outside, are these. */
bool text_is_at(const struct text *text, size_t at, const char *bytes, size_t size);

/** Return: how the file ends its lines, by its first one: "\r\n" or "\n". */
const char *text_newline(const struct text *text);

/** Return: the size of a UTF-8 byte order mark at the start, 0 or 3. */
size_t text_bom(const struct text *text);

/** Says in @ret_error what is wrong at the byte at @at. Return: -EINVAL. */
int text_refuse(const struct text *text, size_t at, const char *reason, struct text_error *ret_error);

/** Return: a new string, owned by the caller; NULL without memory. */
char *text_format(const char *format, ...) __attribute__((format(printf, 1, 2)));
