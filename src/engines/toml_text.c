/* SPDX-License-Identifier: Apache-2.0 */

#include "engines/toml_text.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "engines/toml_scan.h"

#define BEGIN "# Written by \"ctr-gpu setup\", which takes it out again with --remove:"
#define END "# End of what \"ctr-gpu setup\" wrote."

int toml_text_check(const struct text *text, struct text_error *ret_error)
{
	_cleanup_toml_ struct toml toml = {0};

	return toml_scan(text, &toml, ret_error);
}

static int scan(const struct text *text, struct toml *ret)
{
	struct text_error error;

	return toml_scan(text, ret, &error);
}

static const struct toml_entry *find(const struct toml *toml, enum toml_kind kind, const char *path)
{
	for (size_t i = 0; i < toml->count; i++)
		if (toml->entries[i].kind == kind && strcmp(toml->entries[i].path, path) == 0)
			return &toml->entries[i];
	return NULL;
}

static bool is_below(const char *path, const char *above)
{
	size_t length = strlen(above);

	return !length || (strncmp(path, above, length) == 0 && path[length] == '/');
}

int toml_text_get(const struct text *text, const char *path, char **ret)
{
	_cleanup_toml_ struct toml toml = {0};
	const struct toml_entry *entry;
	int r;

	r = scan(text, &toml);
	if (r < 0)
		return r;
	entry = find(&toml, TOML_KEY, path);
	if (!entry)
		return -ENOENT;
	*ret = strndup(text->data + entry->value, entry->end - entry->value);
	return *ret ? 0 : -ENOMEM;
}

/* A string without its quotes; NULL if it is none. Those that are written in the same way as JSON's, which is all that engines write. */
static json_t *unquote(const char *value, size_t length)
{
	json_t *json;

	if (length >= 2 && value[0] == '\'' && value[1] != '\'')
		return json_stringn(value + 1, length - 2);
	json = json_loadb(value, length, JSON_DECODE_ANY, NULL);
	if (json_is_string(json))
		return json;
	json_decref(json);
	return NULL;
}

int toml_text_get_string(const struct text *text, const char *path, char **ret)
{
	_cleanup_free_ char *value = NULL;
	_cleanup_json_ json_t *json = NULL;
	int r;

	r = toml_text_get(text, path, &value);
	if (r < 0)
		return r;
	json = unquote(value, strlen(value));
	if (!json)
		return -ENOENT;
	*ret = strdup(json_string_value(json));
	return *ret ? 0 : -ENOMEM;
}

/* The length of a string that begins here, quotes and all. */
static size_t quoted_length(const char *value)
{
	const char *end = value + 1;

	while (*end && *end != *value)
		end += *end == '\\' && *value == '"' && end[1] ? 2 : 1;
	return (size_t)(end - value) + (*end != '\0');
}

int toml_text_get_list(const struct text *text, const char *path, json_t **ret)
{
	_cleanup_json_ json_t *list = json_array();
	_cleanup_free_ char *value = NULL;
	int r;

	r = toml_text_get(text, path, &value);
	if (r < 0 || !list)
		return r < 0 ? r : -ENOMEM;
	if (value[0] != '[')
		return -ENOENT;
	for (const char *at = value + 1; *at;) {
		size_t length = *at == '#' ? strcspn(at, "\n") : *at == '"' || *at == '\'' ? quoted_length(at) : 1;

		if (*at == '"' || *at == '\'')
			(void)json_array_append_new(list, unquote(at, length));
		at += length;
	}
	*ret = json_incref(list);
	return 0;
}

static bool mentions(const struct text *text, const char *path, bool itself)
{
	_cleanup_toml_ struct toml toml = {0};

	if (scan(text, &toml) < 0)
		return false;
	for (size_t i = 0; i < toml.count; i++)
		if ((itself && strcmp(toml.entries[i].path, path) == 0) || is_below(toml.entries[i].path, path))
			return true;
	return false;
}

bool toml_text_mentions(const struct text *text, const char *path)
{
	return mentions(text, path, true);
}

bool toml_text_is_empty(const struct text *text, const char *path)
{
	return !mentions(text, path, false);
}

/* ---- putting in ---- */

void toml_edit_clear(struct toml_edit *edit)
{
	text_clear(&edit->waiting);
	free(edit->table);
	edit->table = NULL;
}

static int note(json_t *journal, json_t *edit)
{
	return edit && json_array_append_new(journal, edit) == 0 ? 0 : -ENOMEM;
}

static char *join(const char *table, const char *key)
{
	return text_format("%s%s%s", table, *table ? "/" : "", key);
}

static int put_over(struct toml_edit *edit, const char *path, const struct toml_entry *entry, const char *value)
{
	struct text *text = edit->text;
	size_t size = entry->end - entry->value;
	int r;

	if (text_is_at(text, entry->value, value, strlen(value)) && size == strlen(value))
		return 0;
	r = note(edit->journal, json_pack("{s:s, s:s, s:s, s:s%}", "do", "value", "leaf", path, "new", value, "old", text->data + entry->value, size));
	return r < 0 ? r : text_splice(text, entry->value, size, value, strlen(value));
}

/* As far in as the first key of the table, or else a step more than its header. */
static char *find_indent(const struct text *text, const struct toml *toml, const struct toml_entry *header)
{
	const struct toml_entry *next = header + 1;
	bool first = next < toml->entries + toml->count && next->kind == TOML_KEY;
	size_t line = first ? next->line : header->line, start = first ? next->start : header->start;

	return text_format("%.*s%s", (int)(start - line), text->data + line, first || start == line ? "" : "  ");
}

/* Below the header, the only place of which it is certain that it belongs to the table. */
static int put_below(struct toml_edit *edit, const char *path, const struct toml *toml, const struct toml_entry *header, const char *key,
		     const char *value)
{
	_cleanup_text_ struct text line = {0};
	struct text *text = edit->text;
	_cleanup_free_ char *indent = find_indent(text, toml, header);
	bool ended = text->data[header->line_end - 1] == '\n';
	const char *newline = text_newline(text);
	int r;

	if (!indent)
		return -ENOMEM;
	r = text_append(&line, "%s%s%s = %s%s", ended ? "" : newline, indent, key, value, ended ? newline : "");
	if (r == 0)
		r = note(edit->journal, json_pack("{s:s, s:s, s:s, s:s}", "do", "line", "leaf", path, "value", value, "new", line.data));
	return r < 0 ? r : text_splice(text, header->line_end, 0, line.data, line.size);
}

/* Whether @path is in an array of tables that is, or is above, @table. */
static bool is_array_above(const char *path, const char *table)
{
	size_t length = strcspn(path, "[");

	return path[length] == '[' && strncmp(path, table, length) == 0 && (table[length] == '/' || !table[length]);
}

/* Whether a header for this table may be appended: not if it was begun in an inline table, an array, or by dotted keys. */
static bool is_open(const struct toml *toml, const char *table)
{
	for (size_t i = 0; i < toml->count; i++) {
		const struct toml_entry *entry = &toml->entries[i];

		if (is_array_above(entry->path, table))
			return false;
		if (entry->kind == TOML_KEY && (is_below(table, entry->path) || strcmp(table, entry->path) == 0))
			return false;
		if (entry->kind == TOML_KEY && is_below(entry->path, table) && entry->table < strlen(table))
			return false;
	}
	return true;
}

static bool is_bare_name(const char *name, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if (!isalnum((unsigned char)name[i]) && name[i] != '_' && name[i] != '-')
			return false;
	return length > 0;
}

static int write_header(struct text *out, const char *table)
{
	const char *between = "";
	int r;

	r = text_append(out, "%s[", out->size ? "\n" : "");
	for (size_t length; *table && r == 0; table += length + (table[length] == '/'), between = ".") {
		const char *quote;

		length = strcspn(table, "/");
		quote = is_bare_name(table, length) ? "" : "\"";
		r = text_append(out, "%s%s%.*s%s", between, quote, (int)length, table, quote);
	}
	return r < 0 ? r : text_append(out, "]\n");
}

static int wait_in(struct toml_edit *edit, const char *table)
{
	int r;

	if (edit->table && strcmp(edit->table, table) == 0)
		return 0;
	r = *table ? write_header(&edit->waiting, table) : 0;
	if (r < 0)
		return r;
	free(edit->table);
	edit->table = strdup(table);
	return edit->table ? 0 : -ENOMEM;
}

static int put_waiting(struct toml_edit *edit, const char *table, const char *key, const char *value)
{
	int r;

	r = wait_in(edit, table);
	return r < 0 ? r : text_append(&edit->waiting, "%s%s = %s\n", *table ? "  " : "", key, value);
}

int toml_text_put(struct toml_edit *edit, const char *table, const char *key, const char *value)
{
	_cleanup_toml_ struct toml toml = {0};
	_cleanup_free_ char *path = join(table, key);
	const struct toml_entry *entry;
	int r;

	if (!path)
		return -ENOMEM;
	r = scan(edit->text, &toml);
	if (r < 0)
		return r;
	entry = find(&toml, TOML_KEY, path);
	if (entry)
		return put_over(edit, path, entry, value);
	entry = find(&toml, TOML_TABLE, table);
	if (entry)
		return put_below(edit, path, &toml, entry, key, value);
	return is_open(&toml, table) ? put_waiting(edit, table, key, value) : -ENOTDIR;
}

static bool is_one_of(const char *key, const char *const *keys)
{
	while (*keys && strcmp(*keys, key) != 0)
		keys++;
	return *keys;
}

int toml_text_copy(struct toml_edit *edit, const struct text *source, const char *from, const char *to, const char *const *but)
{
	_cleanup_toml_ struct toml toml = {0};
	int r;

	r = scan(source, &toml);
	for (size_t i = 0; i < toml.count && r == 0; i++) {
		const struct toml_entry *entry = &toml.entries[i];
		const char *key;

		if (entry->kind != TOML_KEY || !is_below(entry->path, from))
			continue;
		key = entry->path + strlen(from) + 1;
		/* Deeper keys are another table's. */
		if (strchr(key, '/') || is_one_of(key, but) || text_is_at(source, entry->value, "{", 1))
			continue;
		r = wait_in(edit, to);
		if (r == 0)
			r = text_append(&edit->waiting, "  %s = %.*s\n", key, (int)(entry->end - entry->value), source->data + entry->value);
	}
	return r;
}

/* Every newline as the file has them; one that is in a value copied from there may be so already. */
static int append_lines(struct text *out, const char *lines, const char *newline)
{
	int r = 0;

	while (*lines && r == 0) {
		size_t length = strcspn(lines, "\n"), kept = length && lines[length - 1] == '\r' ? length - 1 : length;

		r = text_append(out, "%.*s%s", (int)kept, lines, newline);
		lines += length + (lines[length] == '\n');
	}
	return r;
}

int toml_text_finish(struct toml_edit *edit)
{
	_cleanup_text_ struct text chunk = {0};
	const struct text *text = edit->text;
	const char *newline = text_newline(text);
	bool empty = text->size == text_bom(text), ended = empty || text->data[text->size - 1] == '\n';
	int r;

	if (!edit->waiting.size)
		return 0;
	/* A file without a newline at its end has none afterwards, either. */
	r = text_append(&chunk, "%s%s" BEGIN "%s", ended ? "" : newline, empty ? "" : newline, newline);
	if (r == 0)
		r = append_lines(&chunk, edit->waiting.data, newline);
	if (r == 0)
		r = text_append(&chunk, END "%s", ended ? newline : "");
	if (r == 0)
		r = note(edit->journal, json_pack("{s:s, s:s, s:s%}", "do", "block", "leaf", edit->table, "new", chunk.data, chunk.size));
	return r < 0 ? r : text_splice(edit->text, text->size, 0, chunk.data, chunk.size);
}

/* ---- taking out ---- */

static int undo_value(struct text *text, const struct toml *toml, const char *leaf, const char *now, const char *old)
{
	const struct toml_entry *entry = find(toml, TOML_KEY, leaf);
	size_t size = entry ? entry->end - entry->value : 0;

	if (!entry)
		return 0;
	if (size != strlen(now) || !text_is_at(text, entry->value, now, size))
		return 1;
	return text_splice(text, entry->value, size, old, strlen(old));
}

static int undo_line(struct text *text, const struct toml *toml, const char *leaf, const char *value, const char *line)
{
	const struct toml_entry *entry = find(toml, TOML_KEY, leaf);
	size_t length = strlen(line), lead = strspn(line, "\r\n");

	if (!entry)
		return 0;
	if (entry->end - entry->value != strlen(value) || !text_is_at(text, entry->value, value, strlen(value)))
		return 1;
	if (entry->line >= lead && text_is_at(text, entry->line - lead, line, length))
		return text_splice(text, entry->line - lead, length, NULL, 0);
	if (entry->inside)
		return 1;
	return text_splice(text, entry->line, entry->line_end - entry->line, NULL, 0);
}

static int undo_block(struct text *text, const char *chunk)
{
	const char *at = text->size ? memmem(text->data, text->size, chunk, strlen(chunk)) : NULL;

	if (at)
		return text_splice(text, (size_t)(at - text->data), strlen(chunk), NULL, 0);
	return text->size && memmem(text->data, text->size, BEGIN, strlen(BEGIN)) ? 1 : 0;
}

int toml_text_undo(struct text *text, const json_t *edit)
{
	const char *what = json_string_value(json_object_get(edit, "do")), *leaf = json_string_value(json_object_get(edit, "leaf"));
	const char *now = json_string_value(json_object_get(edit, "new")), *old = json_string_value(json_object_get(edit, "old"));
	const char *value = json_string_value(json_object_get(edit, "value"));
	_cleanup_toml_ struct toml toml = {0};
	int r;

	if (!what || !leaf || !now)
		return -EINVAL;
	r = scan(text, &toml);
	if (r < 0)
		return r;
	if (strcmp(what, "value") == 0 && old)
		return undo_value(text, &toml, leaf, now, old);
	if (strcmp(what, "line") == 0 && value)
		return undo_line(text, &toml, leaf, value, now);
	return strcmp(what, "block") == 0 ? undo_block(text, now) : -EINVAL;
}

int toml_text_forget(struct text *text)
{
	const char *begin, *end, *rest;
	int r = 0;

	while (r == 0 && text->size && (begin = strstr(text->data, BEGIN)) && (end = strstr(begin, END))) {
		end += strcspn(end, "\n");
		rest = *end ? end + 1 : end;
		r = text_splice(text, (size_t)(begin - text->data), (size_t)(rest - begin), NULL, 0);
	}
	return r;
}

int toml_text_remove_tables(struct text *text, const char *path)
{
	_cleanup_toml_ struct toml toml = {0};
	int r;

	r = scan(text, &toml);
	/* From the last one on, so that the places of those before it stay right. */
	for (size_t i = toml.count; r == 0 && i-- > 0;) {
		const struct toml_entry *entry = &toml.entries[i];
		const char *table = entry->path;

		if ((entry->kind == TOML_KEY && entry->inside) || (strcmp(table, path) != 0 && !is_below(table, path)))
			continue;
		r = text_splice(text, entry->line, entry->line_end - entry->line, NULL, 0);
	}
	return r;
}
