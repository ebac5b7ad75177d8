/* SPDX-License-Identifier: Apache-2.0 */

/* Edits of an engine's TOML file: lines of ours are put in, and taken out again; all others stay as they are. */

#include "engines/text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/str.h"

/* How a line of ours ends, and how a line begins that setup has switched off. */
#define MARK " # ctr-gpu setup"
#define HIDDEN "# ctr-gpu setup: "
/* Around tables of ours. */
#define BEGIN "# Written by \"ctr-gpu setup\", which "
#define BEGIN_PART BEGIN "takes it out again with --remove:"
#define BEGIN_FILE BEGIN "removes this file with --remove:"
#define END "# End of what \"ctr-gpu setup\" wrote."

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

/* ---- in tables that are there: from the last entry to the first, so that earlier places stay valid ---- */

/* Finds a table in @now, and what is there in @wanted: NULL if the table is to go. Return: whether it is there. */
static bool toml_edit_find(json_t *now, json_t *wanted, const json_t *table, json_t **ret)
{
	json_t *value;
	const char *name;
	size_t i;

	if (now == table)
		*ret = wanted;
	if (now == table)
		return true;
	json_object_foreach (now, name, value)
		if (toml_edit_find(value, json_object_get(wanted, name), table, ret))
			return true;
	json_array_foreach (now, i, value)
		if (toml_edit_find(value, json_array_get(wanted, i), table, ret))
			return true;
	return false;
}

/* Adds a line of ours behind an entry's line: @left, the value, @right. */
static int toml_edit_put_line(struct text_buffer *text, const struct toml_entry *entry, const char *left,
			      const json_t *value, const char *right)
{
	bool ended = text->data[entry->end_of_line - 1] == '\n';
	_cleanup_free_ char *printed = toml_edit_print(value), *put = NULL;
	const char *newline = text_buffer_newline(text);

	if (!printed || str_format(&put, "%s%s%s%s" MARK "%s", ended ? "" : newline, left, printed, right,
				   ended ? newline : "") < 0)
		return -ENOMEM;
	return text_buffer_splice(text, entry->end_of_line, 0, put, strlen(put));
}

/* Has the lines of an entry not count any more. */
static int toml_edit_hide(struct text_buffer *text, const struct toml_entry *entry)
{
	int r = 0;

	for (size_t at = entry->end_of_line; at > entry->line && r == 0; at--)
		if (at - 1 == entry->line || text->data[at - 2] == '\n')
			r = text_buffer_splice(text, at - 1, 0, HIDDEN, strlen(HIDDEN));
	return r;
}

/* With what is before and behind the value on its line, such as a comment. */
static int toml_edit_replace(struct text_buffer *text, const struct toml_entry *entry, const json_t *value)
{
	const char *line = text->data + entry->line, *end = text->data + entry->value_end;
	_cleanup_free_ char *left = strndup(line, entry->value_start - entry->line),
			    *right = strndup(end, strcspn(end, "\r\n"));
	int r;

	if (!left || !right)
		return -ENOMEM;
	/* In an inline table of several lines. */
	if (strchr(left, '\n') || text->data + entry->end_of_line > end + strlen(right) + strlen("\r\n"))
		return 0;
	r = toml_edit_put_line(text, entry, left, value, right);
	return r < 0 ? r : toml_edit_hide(text, entry);
}

/* Directly below the header, where a line certainly belongs to the table; indented as its first key is. */
static int toml_edit_add_keys(struct text_buffer *text, const struct toml *toml, const struct toml_entry *header,
			      json_t *wanted)
{
	const struct toml_entry *next = header + 1;
	bool first = next < toml->entries + toml->count && next->key;
	size_t line = first ? next->line : header->line, start = first ? next->start : header->start;
	_cleanup_free_ char *indent = strndup(text->data + line, start - line);
	const char *name;
	json_t *value;
	int r = indent ? 0 : -ENOMEM;

	json_object_foreach (wanted, name, value) {
		_cleanup_free_ char *key = toml_edit_quote(name), *left = NULL;

		if (r < 0 || json_is_object(value) || json_object_get(header->table, name))
			continue;
		r = !key || str_format(&left, "%s%s%s = ", indent, first || !*indent ? "" : "  ", key) < 0
			    ? -ENOMEM
			    : toml_edit_put_line(text, header, left, value, "");
	}
	return r;
}

static int toml_edit_change(struct text_buffer *text, const struct toml *toml, json_t *wanted)
{
	int r = 0;

	for (size_t i = toml->count; i-- > 0 && r == 0;) {
		const struct toml_entry *entry = &toml->entries[i];
		json_t *to = NULL, *value, *now;

		if (!toml_edit_find(toml->root, wanted, entry->table, &to))
			continue;
		value = entry->key ? json_object_get(to, entry->key) : NULL;
		now = entry->key ? json_object_get(entry->table, entry->key) : NULL;
		if (entry->header && to)
			r = toml_edit_add_keys(text, toml, entry, to);
		else if ((entry->header && !to) || (entry->key && !value && !entry->inside))
			r = toml_edit_hide(text, entry);
		else if (value && !json_equal(now, value) && !(json_is_object(now) && json_is_object(value)))
			r = toml_edit_replace(text, entry, value);
	}
	return r;
}

/* ---- where it is not: new tables ---- */

/* Lines that end as those of a file. */
struct toml_edit_block {
	FILE *out;
	const struct toml *toml;
	const char *newline;
	bool begun;
};

static void toml_edit_print_header(struct toml_edit_block *block, const char *header)
{
	(void)fprintf(block->out, "%s[%s]%s", block->begun ? block->newline : "", header, block->newline);
	block->begun = true;
}

/* Adds the values, not the tables, that @now lacks and that have no place below its header. Return: 0 or -ENOMEM. */
static int toml_edit_add_values(struct toml_edit_block *block, const json_t *now, json_t *wanted, const char *header)
{
	bool has_header = now && toml_parse_find(block->toml, now, NULL), begun = !*header;
	const char *name;
	json_t *value;

	json_object_foreach (wanted, name, value) {
		_cleanup_free_ char *key = toml_edit_quote(name), *printed = toml_edit_print(value);

		if (json_is_object(value) || json_object_get(now, name) || has_header)
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
	const char *newline = text_buffer_newline(text);
	struct toml_edit_block block = {.toml = toml, .newline = newline};
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
	r = str_format(&put, "%s%s%s%s%s" END "%s", ended ? "" : newline, empty ? "" : newline,
		       text->data ? BEGIN_PART : BEGIN_FILE, newline, tables, ended ? newline : "");
	return r < 0 ? r : text_buffer_splice(text, text->size, 0, put, strlen(put));
}

int toml_edit_write(struct text_buffer *text, json_t *wanted)
{
	_cleanup_toml_ struct toml toml = {0};
	struct text_buffer_error error;
	int r;

	(void)toml_edit_undo(text, TOML_EDIT_RESTORE);
	r = toml_parse_scan(text, &toml, &error);
	if (r == 0)
		r = toml_edit_append(text, &toml, wanted);
	return r < 0 ? r : toml_edit_change(text, &toml, wanted);
}

/* ---- taking out ---- */

/* The size of the newline that ends before @at. */
static size_t toml_edit_newline_before(const struct text_buffer *text, size_t at)
{
	return !at || text->data[at - 1] != '\n' ? 0 : at > 1 && text->data[at - 2] == '\r' ? 2 : 1;
}

/* A line of a text that is gone through, and as much of the text before it as stays. */
struct toml_edit_line {
	size_t at, next, kept;
	bool ended;
};

static struct toml_edit_line toml_edit_find_line(const struct text_buffer *text, size_t at, size_t kept)
{
	size_t length = strcspn(text->data + at, "\n");
	bool ended = at + length < text->size;

	return (struct toml_edit_line){at, at + length + ended, kept, ended};
}

static void toml_edit_keep(struct text_buffer *text, struct toml_edit_line *line, size_t skip)
{
	size_t size = line->next - line->at - skip;

	memmove(text->data + line->kept, text->data + line->at + skip, size);
	line->kept += size;
}

/* Drops a line. If the text ends without a newline, the newline before the line was added with it, and goes too. */
static void toml_edit_drop(const struct text_buffer *text, struct toml_edit_line *line)
{
	if (!line->ended)
		line->kept -= toml_edit_newline_before(text, line->kept);
}

/* Drops a block with its first and last line and the empty line before it. Return: whether there is one. */
static bool toml_edit_drop_block(const struct text_buffer *text, struct toml_edit_line *line)
{
	const char *again = strstr(text->data + line->at + 1, BEGIN), *end = strstr(text->data + line->at, END);
	size_t one = toml_edit_newline_before(text, line->kept), two = toml_edit_newline_before(text, line->kept - one);

	if (!end || (again && again < end))
		return false;
	*line = toml_edit_find_line(text, (size_t)(end - text->data), line->kept);
	line->kept -= !line->ended ? one + two : two ? one : 0;
	return true;
}

static bool toml_edit_is_marked(const struct text_buffer *text, const struct toml_edit_line *line)
{
	size_t size = strlen(MARK), end = line->next - (line->ended ? toml_edit_newline_before(text, line->next) : 0);

	return end - line->at >= size && text_buffer_is_at(text, end - size, MARK, size);
}

static bool toml_edit_begins(const struct text_buffer *text, const struct toml_edit_line *line, const char *with)
{
	return text_buffer_is_at(text, line->at, with, strlen(with));
}

static enum toml_edit_undone toml_edit_undo_lines(struct text_buffer *text, enum toml_edit_undo how)
{
	enum toml_edit_undone undone = TOML_EDIT_NOTHING;
	struct toml_edit_line line = {.next = text_buffer_bom(text), .kept = text_buffer_bom(text)};
	bool whole = false;

	while (line.next < text->size) {
		line = toml_edit_find_line(text, line.next, line.kept);
		if (toml_edit_begins(text, &line, BEGIN) && how == TOML_EDIT_KEEP_TABLES)
			undone = TOML_EDIT_TABLES_STAY;
		whole |= toml_edit_begins(text, &line, BEGIN_FILE);
		if (toml_edit_begins(text, &line, HIDDEN) && how == TOML_EDIT_FORGET)
			toml_edit_drop(text, &line);
		else if (toml_edit_begins(text, &line, HIDDEN))
			toml_edit_keep(text, &line, strlen(HIDDEN));
		else if (toml_edit_is_marked(text, &line))
			toml_edit_drop(text, &line);
		else if (!toml_edit_begins(text, &line, BEGIN) || how == TOML_EDIT_KEEP_TABLES ||
			 !toml_edit_drop_block(text, &line)) {
			toml_edit_keep(text, &line, 0);
			continue;
		}
		undone = undone == TOML_EDIT_NOTHING ? TOML_EDIT_DONE : undone;
	}
	if (text->data && undone != TOML_EDIT_NOTHING)
		text->data[text->size = line.kept] = '\0';
	if (whole && !text->data[strspn(text->data, " \t\r\n")])
		text_buffer_clear(text);
	return undone;
}

/* A line may have several marks, which setup never writes, and one may only count when another line is gone. */
enum toml_edit_undone toml_edit_undo(struct text_buffer *text, enum toml_edit_undo how)
{
	enum toml_edit_undone undone = TOML_EDIT_NOTHING, more;
	size_t before;

	do {
		before = text->size;
		more = toml_edit_undo_lines(text, how);
		undone = more > undone ? more : undone;
	} while (text->size < before);
	return undone;
}
