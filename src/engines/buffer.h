/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The bytes of a configuration file that is being edited. Whoever edits keeps every byte that is not its own, so that
 * taking its own out again gives the file back as it was.
 */

#include <stdbool.h>
#include <stddef.h>

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
