/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/setup/json_file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/str.h"

/* What its first indented member is indented by. */
static const char *json_file_indent(const struct text *text, size_t *ret_size)
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
static int json_file_lay_out(const struct text *text, const char *printed, char **ret)
{
	const char *newline = text_newline(text), *indent;
	size_t unit, size;
	FILE *out = open_memstream(ret, &size);
	bool failed;

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
	failed = ferror(out);
	return fclose(out) != 0 || failed ? -ENOMEM : 0;
}

/* Members are on lines, unless all of them are on one. */
static size_t json_file_style(const char *open, const char *close)
{
	if (!open || memchr(open, '\n', (size_t)(close - open)) || open + 1 + strspn(open + 1, " \t\r\n") == close)
		return JSON_INDENT(1);
	return strstr(open, ": ") ? 0 : JSON_COMPACT;
}

int json_file_write(struct text *text, const json_t *wanted)
{
	const char *open = text->size ? strchr(text->data, '{') : NULL, *close = open ? strrchr(open, '}') : NULL;
	_cleanup_free_ char *printed = NULL, *laid_out = NULL, *put = NULL;
	size_t before = open ? (size_t)(open - text->data) : text_bom(text);
	int r;

	r = json_print(wanted, json_file_style(open, close), &printed);
	if (r == 0)
		r = json_file_lay_out(text, printed, &laid_out);
	/* What is around the object stays. */
	if (r == 0)
		r = str_format(&put, "%.*s%s%s", (int)before, before ? text->data : "", laid_out,
			       close ? close + 1 : text_newline(text));
	return r < 0 ? r : text_splice(text, 0, text->size, put, strlen(put));
}
