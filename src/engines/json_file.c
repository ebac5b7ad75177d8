/* SPDX-License-Identifier: Apache-2.0 */

#include "engines/text.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/str.h"

/* The parser says where, but takes no large numbers then, so they are rounded. */
static int json_file_refuse(const struct text_buffer *text, size_t start, char *reason,
			    struct text_buffer_error *ret_error)
{
	json_error_t where;
	json_t *json = json_loadb(text->data + start, text->size - start,
				  JSON_REJECT_DUPLICATES | JSON_DECODE_INT_AS_REAL, &where);
	/* "… near 'TOKEN'" quotes the file, which may contain secrets. */
	char *quote = strstr(reason, " near "), *line = strstr(reason, JSON_LINE);

	if (quote)
		*quote = '\0';
	else if (line)
		*line = '\0';
	(void)text_buffer_refuse(text, start, reason, ret_error);
	if (!json && where.line > 0 && where.column > 0) {
		ret_error->line = (size_t)where.line;
		ret_error->column = (size_t)where.column;
	}
	json_decref(json);
	return -EINVAL;
}

int json_file_read(const struct text_buffer *text, json_t **ret, struct text_buffer_error *ret_error)
{
	size_t bom = text_buffer_bom(text), length = text->size ? strlen(text->data) : 0;
	size_t start = text->size ? bom + strspn(text->data + bom, " \t\r\n") : 0;
	char reason[JSON_ERROR_TEXT_LENGTH];
	_cleanup_json_ json_t *json = NULL;
	int r;

	/* The parser takes some of these for blanks. */
	if (length < text->size)
		return text_buffer_refuse(text, length, "a NUL character", ret_error);
	if (start == text->size) {
		*ret = json_object();
		return *ret ? 0 : -ENOMEM;
	}
	r = json_parse_to_print(text->data + bom, text->size - bom, &json, reason);
	if (r == -EINVAL)
		return json_file_refuse(text, bom, reason, ret_error);
	if (r == 0 && !json_is_object(json))
		return text_buffer_refuse(text, start, "an object is expected, {...}", ret_error);
	*ret = steal_ptr(json);
	return r;
}

/* ---- writing ---- */

/* What its first indented member is indented by. */
static const char *json_file_indent(const struct text_buffer *text, size_t *ret_size)
{
	for (const char *at = text->data; at && (at = strchr(at, '\n')); at++) {
		*ret_size = strspn(at + 1, " \t");
		if (*ret_size && at[1 + *ret_size] == '"')
			return at + 1;
	}
	*ret_size = 4;
	return "    ";
}

/* Puts the file's own indentation and line ends into what was printed with a blank for each level. */
static int json_file_lay_out(const struct text_buffer *text, const char *printed, char **ret)
{
	const char *newline = text_buffer_newline(text), *indent;
	struct memstream stream;
	FILE *out = memstream_open(&stream);
	size_t unit;

	if (!out)
		return -ENOMEM;
	indent = json_file_indent(text, &unit);
	for (const char *at = printed; *at; at++) {
		if (*at != '\n') {
			(void)fputc(*at, out);
			continue;
		}
		for ((void)fputs(newline, out); at[1] == ' '; at++)
			(void)fwrite(indent, unit, 1, out);
	}
	return memstream_close(&stream, ret, NULL);
}

/* Members are on lines, unless all of them are on one. */
static size_t json_file_style(const char *open, const char *close)
{
	if (!open || memchr(open, '\n', (size_t)(close - open)) || open + 1 + strspn(open + 1, " \t\r\n") == close)
		return JSON_INDENT(1);
	return strstr(open, ": ") ? 0 : JSON_COMPACT;
}

int json_file_write(struct text_buffer *text, const json_t *wanted)
{
	const char *open = text->size ? strchr(text->data, '{') : NULL, *close = open ? strrchr(open, '}') : NULL;
	_cleanup_free_ char *printed = NULL, *laid_out = NULL, *put = NULL;
	size_t before = open ? (size_t)(open - text->data) : text_buffer_bom(text);
	int r;

	r = json_print(wanted, json_file_style(open, close), &printed);
	if (r == 0)
		r = json_file_lay_out(text, printed, &laid_out);
	/* What is around the object stays. */
	if (r == 0)
		r = str_format(&put, "%.*s%s%s", (int)before, before ? text->data : "", laid_out,
			       close ? close + 1 : text_buffer_newline(text));
	return r != 0 ? r : text_buffer_splice(text, 0, text->size, put, strlen(put));
}
