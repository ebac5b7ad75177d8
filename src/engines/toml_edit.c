/* SPDX-License-Identifier: Apache-2.0 */

#include "engines/text.h"

#include <errno.h>
#include <string.h>

#include "base/json.h"
#include "base/memstream.h"
#include "base/str.h"

#define BEGIN "# Written by \"ctr-gpu setup\", which takes it out again with --remove:"
#define END "# End of what \"ctr-gpu setup\" wrote."
#define BLANKS " \t\r\n"

/* JSON's strings, numbers, words and arrays are TOML's, too. Return: owned by the caller; NULL without memory. */
static char *toml_edit_print(const json_t *value)
{
	return json_dumps(value, JSON_ENCODE_ANY);
}

static char *toml_edit_quote(const char *name)
{
	static const char bare[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";
	_cleanup_json_ json_t *string = json_string(name);

	return *name && !name[strspn(name, bare)] ? strdup(name) : toml_edit_print(string);
}

/* ---- where the table is there: each returns whether something was done, or -errno ---- */

/* Whether @table is @above, or in it. */
static bool toml_edit_is_below(const json_t *table, json_t *above)
{
	const char *name;
	json_t *next;

	if (table == above)
		return true;
	json_object_foreach (above, name, next)
		if (toml_edit_is_below(table, next))
			return true;
	return false;
}

/* The lines of a key, or of a table and those in it. */
static int toml_edit_remove(struct text_buffer *text, const struct toml *toml, const json_t *table, const char *name)
{
	json_t *value = json_object_get(table, name);
	int r = 0, done = 0;

	/* From the last to the first, so that the places of earlier ones stay valid. */
	for (size_t i = toml->count; r == 0 && i-- > 0;) {
		const struct toml_entry *entry = &toml->entries[i];
		bool itself = entry->table == table && entry->key && streq(entry->key, name);

		if (entry->inside || (!entry->header && !entry->key) ||
		    (!itself && !toml_edit_is_below(entry->table, value)))
			continue;
		r = text_buffer_splice(text, entry->line, entry->end_of_line - entry->line, NULL, 0);
		done = 1;
	}
	return r < 0 ? r : done;
}

static int toml_edit_replace(struct text_buffer *text, const struct toml_entry *entry, const json_t *value)
{
	_cleanup_free_ char *put = toml_edit_print(value);

	if (!entry)
		return 0;
	return !put || text_buffer_splice(text, entry->value_start, entry->value_end - entry->value_start, put,
					  strlen(put))
		       ? -ENOMEM
		       : 1;
}

/* Below the header, the only place of which it is certain that it belongs to the table; as far in as its first key. */
static int toml_edit_insert(struct text_buffer *text, const struct toml *toml, const struct toml_entry *header,
			    const char *name, const json_t *value)
{
	const struct toml_entry *next = header + 1;
	bool first = next < toml->entries + toml->count && next->key,
	     ended = text->data[header->end_of_line - 1] == '\n';
	size_t line = first ? next->line : header->line, start = first ? next->start : header->start;
	_cleanup_free_ char *key = toml_edit_quote(name), *printed = toml_edit_print(value), *put = NULL;
	const char *newline = text_buffer_newline(text);

	if (!key || !printed ||
	    str_format(&put, "%s%.*s%s%s = %s%s", ended ? "" : newline, (int)(start - line), text->data + line,
		       first || start == line ? "" : "  ", key, printed, ended ? newline : "") < 0)
		return -ENOMEM;
	return text_buffer_splice(text, header->end_of_line, 0, put, strlen(put)) < 0 ? -ENOMEM : 1;
}

/* One step from what a table says to what it is to say. */
static int toml_edit_step(struct text_buffer *text, const struct toml *toml, json_t *now, json_t *wanted)
{
	const struct toml_entry *header = toml_parse_find(toml, now, NULL);
	const char *name;
	json_t *value;
	int r = 0;

	json_object_foreach (now, name, value) {
		json_t *to = json_object_get(wanted, name);

		if (!to)
			r = toml_edit_remove(text, toml, now, name);
		else if (json_is_object(value) && json_is_object(to))
			r = toml_edit_step(text, toml, value, to);
		else if (!json_equal(value, to))
			r = toml_edit_replace(text, toml_parse_find(toml, now, name), to);
		if (r)
			return r;
	}
	json_object_foreach (wanted, name, value)
		if (header && !json_is_object(value) && !json_object_get(now, name))
			return toml_edit_insert(text, toml, header, name, value);
	return 0;
}

/* ---- where it is not: new tables ---- */

/* Lines that end as those of a file. */
struct toml_edit_block {
	FILE *out;
	const char *newline;
	bool begun;
};

static void toml_edit_print_header(struct toml_edit_block *block, const char *header)
{
	(void)fprintf(block->out, "%s[%s]%s", block->begun ? block->newline : "", header, block->newline);
	block->begun = true;
}

/* Adds the values, not the tables, that @now lacks. Return: 0 or -ENOMEM. */
static int toml_edit_add_values(struct toml_edit_block *block, const json_t *now, json_t *wanted, const char *header)
{
	bool begun = !*header;
	const char *name;
	json_t *value;

	json_object_foreach (wanted, name, value) {
		_cleanup_free_ char *key = toml_edit_quote(name), *printed = toml_edit_print(value);

		if (json_is_object(value) || json_object_get(now, name))
			continue;
		if (!key || !printed)
			return -ENOMEM;
		if (!begun)
			toml_edit_print_header(block, header);
		(void)fprintf(block->out, "%s%s = %s%s", *header ? "  " : "", key, printed, block->newline);
		block->begun = true;
		begun = true;
	}
	if (!begun && !now && !json_object_size(wanted))
		toml_edit_print_header(block, header);
	return 0;
}

/* Adds what @now, which may be NULL, lacks. Return: 0 or -ENOMEM. */
static int toml_edit_add(struct toml_edit_block *block, const json_t *now, json_t *wanted, const char *header)
{
	const char *name;
	json_t *value;
	int r;

	r = toml_edit_add_values(block, now, wanted, header);
	json_object_foreach (wanted, name, value) {
		_cleanup_free_ char *key = toml_edit_quote(name), *below = NULL;

		if (r == 0 && json_is_object(value))
			r = key ? str_format(&below, "%s%s%s", header, *header ? "." : "", key) : -ENOMEM;
		if (r == 0 && below)
			r = toml_edit_add(block, json_object_get(now, name), value, below);
	}
	return r;
}

static int toml_edit_append(struct text_buffer *text, const struct toml *toml, json_t *wanted)
{
	bool empty = text->size == text_buffer_bom(text), ended = empty || text->data[text->size - 1] == '\n';
	_cleanup_free_ char *tables = NULL, *put = NULL;
	struct toml_edit_block block = {.newline = text_buffer_newline(text)};
	struct memstream stream;
	size_t size = 0;
	int r;

	block.out = memstream_open(&stream);
	if (!block.out)
		return -ENOMEM;
	r = toml_edit_add(&block, toml->root, wanted, "");
	if (memstream_close(&stream, &tables, &size) < 0 || r < 0)
		return -ENOMEM;
	if (!size)
		return 0;
	/* A file without a newline at its end has none afterwards, either. */
	r = str_format(&put, "%s%s" BEGIN "%s%s" END "%s", ended ? "" : block.newline, empty ? "" : block.newline,
		       block.newline, tables, ended ? block.newline : "");
	return r < 0 ? r : text_buffer_splice(text, text->size, 0, put, strlen(put));
}

int toml_edit_write(struct text_buffer *text, json_t *wanted)
{
	struct text_buffer_error error;
	int r;

	do {
		_cleanup_toml_ struct toml toml = {0};

		r = toml_parse_scan(text, &toml, &error);
		if (r == 0)
			r = toml_edit_step(text, &toml, toml.root, wanted);
		if (r == 0)
			r = toml_edit_append(text, &toml, wanted);
	} while (r > 0);
	return r < 0 ? r : toml_edit_cut(text, false);
}

/* ---- the marked lines ---- */

/* The size of the newline that ends before @at. */
static size_t toml_edit_newline_before(const struct text_buffer *text, size_t at)
{
	return !at || text->data[at - 1] != '\n' ? 0 : at > 1 && text->data[at - 2] == '\r' ? 2 : 1;
}

/* Whether there is more than blank lines and headers of tables that have gone. */
static bool toml_edit_has_keys(const char *at, const char *end)
{
	for (at += strspn(at, BLANKS); at < end && *at == '['; at += strspn(at, BLANKS))
		at += strcspn(at, "\n");
	return at < end;
}

int toml_edit_cut(struct text_buffer *text, bool whole)
{
	size_t from = 0, start, one, two, before;
	int r;

	while (text->size > from) {
		const char *begin = strstr(text->data + from, BEGIN), *last = begin ? strstr(begin, END) : NULL, *end;

		if (!last)
			break;
		end = last + strcspn(last, "\n");
		from = (size_t)(end - text->data);
		if (!whole && toml_edit_has_keys(begin + strlen(BEGIN), last))
			continue;
		/*
		 * With the empty line before it and, at an end without a newline, with the newline that we had to end
		 * the last line with.
		 */
		start = (size_t)(begin - text->data);
		one = toml_edit_newline_before(text, start);
		two = toml_edit_newline_before(text, start - one);
		before = *end != '\n' ? one + two : two ? one : 0;
		r = text_buffer_splice(text, start - before, before + from - start + (*end == '\n'), NULL, 0);
		if (r < 0)
			return r;
		from = start - before;
	}
	return 0;
}
