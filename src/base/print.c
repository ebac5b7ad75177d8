/* SPDX-License-Identifier: Apache-2.0 */

#include "base/print.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"

/* Of what is not UTF-8, such as a file's name, what can be shown. */
json_t *print_string(const char *text)
{
	json_t *string = text ? json_string(text) : NULL;
	_cleanup_free_ char *shown = text && !string ? strdup(text) : NULL;

	if (shown) {
		printable_only(shown);
		string = json_string(shown);
	}
	return string ? string : json_null();
}

json_t *print_strings(const struct strv *list)
{
	return print_array(i, list->count, print_string(list->items[i]));
}

int print_finish(FILE *file)
{
	return fflush(file) != 0 || ferror(file) ? -EIO : 0;
}

/*
 * JSON need not escape what a terminal obeys: 0x7f, UTF-8's own control characters, what sets a direction. All of these
 * have 16 bits.
 */
static void print_write_document(const char *text, FILE *file)
{
	while (*text) {
		size_t length = *text == '\n' ? 1 : printable_length(text);
		uint32_t c = 0;

		(void)fwrite(text, 1, length, file);
		if (length == 0) {
			length = printable_read(text, &c);
			(void)fprintf(file, "\\u%04x", (unsigned)c);
		}
		text += length > 0 ? length : 1;
	}
	(void)fputc('\n', file);
}

int print_write_json(json_t *json, FILE *file)
{
	_cleanup_free_ char *text = json ? json_dumps(json, JSON_INDENT(2) | JSON_PRESERVE_ORDER) : NULL;

	json_decref(json);
	if (!text)
		return -ENOMEM;
	print_write_document(text, file);
	return print_finish(file);
}

/* Return: how many bytes of @text it has. */
static size_t print_write_character(const char *text, FILE *file)
{
	size_t length = printable_length(text);

	if (length == 0)
		(void)fputc('?', file);
	(void)fwrite(text, 1, length, file);
	return length > 0 ? length : 1;
}

void print_write_text(const char *text, FILE *file)
{
	while (*text)
		text += print_write_character(text, file);
}

void print_safe(FILE *file, const char *format, ...)
{
	bool ends = *format && format[strlen(format) - 1] == '\n';
	char text[PRINT_LINE_MAX];
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	/* The line break is written below; of what is too long it is missing. */
	if (ends && length > 0 && length < PRINT_LINE_MAX)
		text[length - 1] = '\0';
	print_write_text(length < 0 ? "" : text, file);
	if (ends)
		(void)fputc('\n', file);
}

void print_write_csv_field(const char *text, FILE *file)
{
	if (!text)
		return;
	if (!strpbrk(text, "\",\r\n")) {
		print_write_text(text, file);
		return;
	}
	(void)fputc('"', file);
	while (*text) {
		if (*text == '"')
			(void)fputc('"', file);
		text += print_write_character(text, file);
	}
	(void)fputc('"', file);
}
