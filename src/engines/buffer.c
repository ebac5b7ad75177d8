/* SPDX-License-Identifier: Apache-2.0 */

#include "engines/text.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

void text_buffer_clear(struct text_buffer *text)
{
	free(text->data);
	*text = (struct text_buffer){0};
}

int text_buffer_set(struct text_buffer *text, const char *data, size_t size)
{
	return text_buffer_splice(text, 0, text->size, data, size);
}

int text_buffer_copy(struct text_buffer *text, const struct text_buffer *from)
{
	if (from->data)
		return text_buffer_set(text, from->data, from->size);
	text_buffer_clear(text);
	return 0;
}

int text_buffer_splice(struct text_buffer *text, size_t at, size_t remove, const char *insert, size_t insert_size)
{
	size_t tail = text->size - at - remove, size = at + insert_size + tail;
	char *data;

	data = malloc(size + 1);
	if (!data)
		return -ENOMEM;
	if (at)
		memcpy(data, text->data, at);
	if (insert_size)
		memcpy(data + at, insert, insert_size);
	if (tail)
		memcpy(data + at + insert_size, text->data + at + remove, tail);
	data[size] = '\0';
	free(text->data);
	*text = (struct text_buffer){.data = data, .size = size};
	return 0;
}

bool text_buffer_is_at(const struct text_buffer *text, size_t at, const char *bytes, size_t size)
{
	return at <= text->size && text->size - at >= size && (!size || memcmp(text->data + at, bytes, size) == 0);
}

bool text_buffer_is_same(const struct text_buffer *a, const struct text_buffer *b)
{
	return a->size == b->size && text_buffer_is_at(a, 0, b->data, b->size);
}

const char *text_buffer_newline(const struct text_buffer *text)
{
	const char *newline = text->size ? memchr(text->data, '\n', text->size) : NULL;

	return newline && newline > text->data && newline[-1] == '\r' ? "\r\n" : "\n";
}

size_t text_buffer_bom(const struct text_buffer *text)
{
	static const char bom[] = "\xef\xbb\xbf";

	return text_buffer_is_at(text, 0, bom, sizeof(bom) - 1) ? sizeof(bom) - 1 : 0;
}

int text_buffer_refuse(const struct text_buffer *text, size_t at, const char *reason,
		       struct text_buffer_error *ret_error)
{
	*ret_error = (struct text_buffer_error){.line = 1, .column = 1};
	(void)snprintf(ret_error->reason, sizeof(ret_error->reason), "%s", reason);
	for (size_t i = text_buffer_bom(text); i < at && i < text->size; i++) {
		bool newline = text->data[i] == '\n';

		ret_error->line += newline;
		ret_error->column = newline ? 1 : ret_error->column + 1;
	}
	return -EINVAL;
}

char *text_buffer_format(const char *format, ...)
{
	va_list arguments;
	char *string;
	int length;

	va_start(arguments, format);
	length = vasprintf(&string, format, arguments);
	va_end(arguments);
	return length < 0 ? NULL : string;
}
