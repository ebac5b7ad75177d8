/* SPDX-License-Identifier: Apache-2.0 */

#include "base/report.h"

#include <errno.h>
#include <string.h>

#include "base/shown.h"

json_t *report_string(const char *text)
{
	json_t *string = text ? json_string(text) : NULL;

	return string ? string : json_null();
}

json_t *report_strings(const struct strv *list)
{
	return report_array(i, list->count, report_string(list->items[i]));
}

int report_finish(FILE *file)
{
	return fflush(file) != 0 || ferror(file) ? -EIO : 0;
}

int report_write_json(json_t *json, FILE *file)
{
	int r;

	if (!json)
		return -ENOMEM;
	r = json_dumpf(json, file, JSON_INDENT(2) | JSON_PRESERVE_ORDER);
	json_decref(json);
	if (r == 0)
		(void)fputc('\n', file);
	return r == 0 ? report_finish(file) : -EIO;
}

/* Return: how many bytes of @text it has. */
static size_t report_write_character(const char *text, FILE *file)
{
	size_t length = shown_length(text);

	if (length == 0)
		(void)fputc('?', file);
	(void)fwrite(text, 1, length, file);
	return length > 0 ? length : 1;
}

void report_write_text(const char *text, FILE *file)
{
	while (*text)
		text += report_write_character(text, file);
}

void report_write_csv_field(const char *text, FILE *file)
{
	if (!text)
		return;
	if (!strpbrk(text, "\",\r\n")) {
		report_write_text(text, file);
		return;
	}
	(void)fputc('"', file);
	while (*text) {
		if (*text == '"')
			(void)fputc('"', file);
		text += report_write_character(text, file);
	}
	(void)fputc('"', file);
}
