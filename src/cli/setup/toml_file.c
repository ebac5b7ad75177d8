/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/setup/toml_file.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "engines/toml_text.h"

#define BEGIN "# Written by \"ctr-gpu setup\", which takes it out again with --remove:"
#define END "# End of what \"ctr-gpu setup\" wrote."

static int toml_file_scan(const struct text *text, struct toml *ret)
{
	struct text_error error;

	return toml_text_scan(text, ret, &error);
}

/* ---- putting in ---- */

void toml_file_clear(struct toml_file *file)
{
	if (file->waiting)
		(void)fclose(file->waiting);
	free(file->lines);
	free(file->table);
}

/* Below the header, the only place of which it is certain that it belongs to the table; as far in as its first key. */
static int toml_file_put_below(struct text *text, const struct toml *toml, const struct toml_entry *header,
			       const char *key, const char *value)
{
	const struct toml_entry *next = header + 1;
	bool first = next < toml->entries + toml->count && next->key, ended = text->data[header->line_end - 1] == '\n';
	size_t line = first ? next->line : header->line, start = first ? next->start : header->start;
	const char *newline = text_newline(text);
	_cleanup_free_ char *put = NULL;
	int r;

	r = str_format(&put, "%s%.*s%s%s = %s%s", ended ? "" : newline, (int)(start - line), text->data + line,
		       first || start == line ? "" : "  ", key, value, ended ? newline : "");
	return r < 0 ? r : text_splice(text, header->line_end, 0, put, strlen(put));
}

static bool toml_file_is_bare(const char *name, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if (!isalnum((unsigned char)name[i]) && name[i] != '_' && name[i] != '-')
			return false;
	return length > 0;
}

/* A header, unless the last line that waits is in the same table. */
static int toml_file_wait_in(struct toml_file *file, const char *table)
{
	const char *name = table;

	if (file->table && streq(file->table, table))
		return 0;
	if (!file->waiting)
		file->waiting = open_memstream(&file->lines, &file->size);
	if (!file->waiting)
		return -ENOMEM;
	for (size_t length; *name; name += length + (name[length] == '/')) {
		const char *quote, *before = name > table ? "." : file->table ? "\n[" : "[";

		length = strcspn(name, "/");
		quote = toml_file_is_bare(name, length) ? "" : "\"";
		(void)fprintf(file->waiting, "%s%s%.*s%s", before, quote, (int)length, name, quote);
	}
	(void)fputs(*table ? "]\n" : "", file->waiting);
	free(file->table);
	file->table = strdup(table);
	return file->table ? 0 : -ENOMEM;
}

static int toml_file_wait(struct toml_file *file, const char *table, const char *key, const char *value, size_t size)
{
	int r = toml_file_wait_in(file, table);

	if (r == 0)
		(void)fprintf(file->waiting, "%s%s = %.*s\n", *table ? "  " : "", key, (int)size, value);
	return r;
}

int toml_file_put(struct toml_file *file, const char *table, const char *key, const char *value)
{
	_cleanup_toml_ struct toml toml = {0};
	_cleanup_free_ char *path = NULL;
	const struct toml_entry *entry;
	json_t *above = NULL;
	int r;

	r = str_format(&path, "%s%s%s", table, *table ? "/" : "", key);
	if (r == 0)
		r = toml_file_scan(file->text, &toml);
	if (r < 0)
		return r;
	entry = toml_text_find(&toml, path, false);
	if (entry)
		return text_splice(file->text, entry->value_start, entry->end - entry->value_start, value,
				   strlen(value));
	/* A table, begun by a dotted key. */
	if (toml_text_walk(&toml, path, NULL))
		return -ENOTDIR;
	entry = toml_text_find(&toml, table, true);
	if (entry)
		return toml_file_put_below(file->text, &toml, entry, key, value);
	/* No header can begin a table in an array; what else it cannot begin shows when it is there. */
	(void)toml_text_walk(&toml, table, &above);
	return json_is_object(above) ? toml_file_wait(file, table, key, value, strlen(value)) : -ENOTDIR;
}

static bool toml_file_is_one_of(const char *key, const char *const *keys)
{
	while (*keys && !streq(*keys, key))
		keys++;
	return *keys;
}

int toml_file_copy(struct toml_file *file, const struct text *source, const char *from, const char *to,
		   const char *const *but)
{
	_cleanup_toml_ struct toml toml = {0};
	const json_t *table;
	int r;

	r = toml_file_scan(source, &toml);
	table = r < 0 ? NULL : toml_text_walk(&toml, from, NULL);
	for (size_t i = 0; i < toml.count && r == 0; i++) {
		const struct toml_entry *entry = &toml.entries[i];

		if (entry->table == table && entry->key && !toml_file_is_one_of(entry->key, but) &&
		    !json_is_object(entry->value))
			r = toml_file_wait(file, to, entry->key, source->data + entry->value_start,
					   entry->end - entry->value_start);
	}
	return r;
}

int toml_file_finish(struct toml_file *file)
{
	const struct text *text = file->text;
	bool empty = text->size == text_bom(text), ended = empty || text->data[text->size - 1] == '\n', failed;
	const char *newline = text_newline(text);
	_cleanup_text_ struct text whole = {0};
	_cleanup_free_ char *block = NULL;
	struct text_error error;
	size_t size;
	FILE *out;
	int r;

	if (!file->waiting)
		return 0;
	out = fflush(file->waiting) == 0 ? open_memstream(&block, &size) : NULL;
	if (!out)
		return -ENOMEM;
	(void)fprintf(out, "%s%s" BEGIN "%s", ended ? "" : newline, empty ? "" : newline, newline);
	/* Every newline as the file has them; one that is in a value copied from there may be so already. */
	for (const char *line = file->lines, *end; (end = strchr(line, '\n')); line = end + 1)
		(void)fprintf(out, "%.*s%s", (int)(end - line) - (end > line && end[-1] == '\r'), line, newline);
	/* A file without a newline at its end has none afterwards, either. */
	(void)fprintf(out, END "%s", ended ? newline : "");
	failed = ferror(out);
	r = fclose(out) != 0 || failed ? -ENOMEM : text_set(&whole, text->data, text->size);
	if (r == 0)
		r = text_splice(&whole, whole.size, 0, block, size);
	if (r == 0)
		r = toml_text_check(&whole, &error);
	if (r < 0)
		return r == -EINVAL ? -ENOTDIR : r;
	text_clear(file->text);
	*file->text = steal_struct(&whole);
	return 0;
}

/* ---- taking out ---- */

int toml_file_set(struct text *text, const char *path, const char *value)
{
	_cleanup_toml_ struct toml toml = {0};
	const struct toml_entry *entry;
	int r;

	r = toml_file_scan(text, &toml);
	entry = r < 0 ? NULL : toml_text_find(&toml, path, false);
	if (!entry)
		return r;
	if (value)
		return text_splice(text, entry->value_start, entry->end - entry->value_start, value, strlen(value));
	return entry->inside ? 0 : text_splice(text, entry->line, entry->line_end - entry->line, NULL, 0);
}

/* The size of the newline that ends before @at. */
static size_t toml_file_newline_before(const struct text *text, size_t at)
{
	return !at || text->data[at - 1] != '\n' ? 0 : at > 1 && text->data[at - 2] == '\r' ? 2 : 1;
}

int toml_file_cut(struct text *text, const struct text *known)
{
	size_t from = 0;
	int changed = 0, r;

	while (text->size > from) {
		char *begin = strstr(text->data + from, BEGIN), *last = begin ? strstr(begin, END) : NULL,
		     *end = last ? last + strcspn(last, "\n") : NULL;
		size_t start = begin ? (size_t)(begin - text->data) : 0, size = end ? (size_t)(end - begin) : 0, one,
		       two, before;

		if (!end)
			break;
		if (known && (!known->size || !memmem(known->data, known->size, begin, (size_t)(last - begin)))) {
			changed = 1;
			from = start + size;
			continue;
		}
		/*
		 * With the empty line before it and, at an end without a newline, with the newline that we had to end
		 * the last line with.
		 */
		one = toml_file_newline_before(text, start);
		two = toml_file_newline_before(text, start - one);
		before = *end != '\n' ? one + two : two ? one : 0;
		from = start - before;
		r = text_splice(text, from, before + size + (*end == '\n'), NULL, 0);
		if (r < 0)
			return r;
	}
	return changed;
}

/* Whether @table is @above, or in it. */
static bool toml_file_is_below(const json_t *table, json_t *above)
{
	const char *name;
	json_t *next;

	if (table == above)
		return true;
	json_object_foreach (above, name, next)
		if (toml_file_is_below(table, next))
			return true;
	return false;
}

int toml_file_remove(struct text *text, const char *path)
{
	_cleanup_toml_ struct toml toml = {0};
	const struct toml_entry *itself;
	json_t *above;
	int r;

	r = toml_file_scan(text, &toml);
	above = r < 0 ? NULL : toml_text_walk(&toml, path, NULL);
	itself = above ? toml_text_find(&toml, path, false) : NULL;
	/* From the last one on, so that the places of those before it stay right. */
	for (size_t i = toml.count; r == 0 && above && i-- > 0;) {
		const struct toml_entry *entry = &toml.entries[i];

		if (!entry->inside && (entry->header || entry->key) &&
		    (entry == itself || toml_file_is_below(entry->table, above)))
			r = text_splice(text, entry->line, entry->line_end - entry->line, NULL, 0);
	}
	return r;
}
