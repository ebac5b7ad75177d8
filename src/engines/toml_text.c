/* SPDX-License-Identifier: Apache-2.0 */

#include "engines/toml_text.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/str.h"

enum { DEPTH_MAX = 64 };

struct scanner {
	const struct text *text;
	size_t at;
	struct toml *toml;
	json_t *table; /* of the header above, borrowed */
	unsigned depth;
	struct text_error *error;
};

static char toml_peek(const struct scanner *s)
{
	return s->at < s->text->size ? s->text->data[s->at] : '\0';
}

static bool toml_at_end(const struct scanner *s)
{
	return s->at >= s->text->size;
}

static bool toml_is_next(const struct scanner *s, const char *what)
{
	return text_is_at(s->text, s->at, what, strlen(what));
}

static int toml_refuse(struct scanner *s, size_t at, const char *reason)
{
	text_locate(s->text, at, s->error);
	(void)snprintf(s->error->reason, sizeof(s->error->reason), "%s", reason);
	return -EINVAL;
}

static int toml_expect(struct scanner *s, const char *what, const char *reason)
{
	if (!toml_is_next(s, what))
		return toml_refuse(s, s->at, reason);
	s->at += strlen(what);
	return 0;
}

static void toml_skip_blanks(struct scanner *s)
{
	while (toml_peek(s) == ' ' || toml_peek(s) == '\t')
		s->at++;
}

static size_t toml_newline_size(const struct scanner *s)
{
	return toml_peek(s) == '\n' ? 1 : toml_is_next(s, "\r\n") ? 2 : 0;
}

/* What may be behind the last thing on a line. */
static int toml_skip_comment(struct scanner *s)
{
	toml_skip_blanks(s);
	if (toml_peek(s) != '#')
		return 0;
	for (; !toml_at_end(s) && !toml_newline_size(s); s->at++)
		if ((unsigned char)toml_peek(s) < ' ' && toml_peek(s) != '\t')
			return toml_refuse(s, s->at, "a control character in a comment");
	return 0;
}

/* What may be between the items of an array. */
static int toml_skip_lines(struct scanner *s)
{
	size_t newline;
	int r;

	do {
		r = toml_skip_comment(s);
		newline = toml_newline_size(s);
		s->at += r < 0 ? 0 : newline;
	} while (r == 0 && newline);
	return r;
}

/* ---- strings and names ---- */

/* JSON has the same escapes, but for two. What it cannot decode is null. */
static int toml_scan_string(struct scanner *s, json_t **ret)
{
	bool lines = toml_is_next(s, "\"\"\"") || toml_is_next(s, "'''"), escapes = toml_peek(s) == '"';
	const char *quotes = s->text->data + s->at;
	size_t length = lines ? 3 : 1, size;

	for (s->at += length; !toml_at_end(s) && !text_is_at(s->text, s->at, quotes, length); s->at++) {
		if (toml_peek(s) == '\\' && escapes)
			s->at++;
		else if ((unsigned char)toml_peek(s) < ' ' && toml_peek(s) != '\t' && !(lines && toml_newline_size(s)))
			return toml_refuse(s, s->at, "a string that does not end on its line");
	}
	if (toml_at_end(s))
		return toml_refuse(s, s->text->size, "a string that does not end");
	s->at += length;
	/* Quotes may stand in front of those that end a text of several lines. */
	for (int extra = 0; lines && extra < 2 && toml_peek(s) == *quotes; extra++)
		s->at++;
	size = (size_t)(s->text->data + s->at - quotes);
	*ret = lines     ? NULL
	       : escapes ? json_loadb(quotes, size, JSON_DECODE_ANY, NULL)
			 : json_stringn(quotes + 1, size - 2);
	if (!*ret)
		*ret = json_null();
	return 0;
}

static bool toml_is_bare(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '-';
}

static int toml_scan_name(struct scanner *s, struct strv *names)
{
	_cleanup_json_ json_t *quoted = NULL;
	size_t start = s->at;
	int r;

	if (toml_peek(s) == '"' || toml_peek(s) == '\'') {
		r = toml_scan_string(s, &quoted);
		if (r == 0 && !json_is_string(quoted))
			r = toml_refuse(s, start, "a name that cannot be read");
		return r < 0 ? r : strv_add(names, json_string_value(quoted));
	}
	while (toml_is_bare(toml_peek(s)))
		s->at++;
	if (s->at == start)
		return toml_refuse(s, start, "a name is expected");
	return strv_take(names, strndup(s->text->data + start, s->at - start));
}

/* Names with dots between them. */
static int toml_scan_names(struct scanner *s, struct strv *names)
{
	int r;

	for (;; s->at++) {
		toml_skip_blanks(s);
		r = toml_scan_name(s, names);
		if (r < 0)
			return r;
		toml_skip_blanks(s);
		if (toml_peek(s) != '.')
			return 0;
	}
}

/* ---- tables ---- */

static int toml_add_entry(struct toml *toml, const struct toml_entry *entry)
{
	struct toml_entry *more = array_grow(toml->entries, toml->count, sizeof(*more));

	if (!more)
		return -ENOMEM;
	toml->entries = more;
	more[toml->count++] = *entry;
	return 0;
}

/*
 * Whether nothing may be added to it any more: an inline table or an array in brackets; with @again, a table that was
 * begun.
 */
static bool toml_is_closed(const struct toml *toml, const json_t *table, bool again)
{
	for (size_t i = 0; i < toml->count; i++)
		if (toml->entries[i].value == table ||
		    (again && !toml->entries[i].key && toml->entries[i].table == table))
			return true;
	return false;
}

/* The table of this name in another, made if it is missing; of an array the last one. */
static int toml_enter(struct scanner *s, size_t start, json_t **table, const char *name)
{
	json_t *next = json_object_get(*table, name);

	if (!next) {
		next = json_object();
		if (!next || json_object_set_new(*table, name, next) < 0)
			return -ENOMEM;
	}
	if (toml_is_closed(s->toml, next, false))
		return toml_refuse(s, start, "this is there already, further up");
	if (json_is_array(next))
		next = json_array_get(next, json_array_size(next) - 1);
	if (!json_is_object(next))
		return toml_refuse(s, start, "this is there already, further up");
	*table = next;
	return 0;
}

static int toml_scan_value(struct scanner *s, json_t **ret);

/* NAME = VALUE; names with dots make tables that no header may begin again. */
static int toml_scan_pair(struct scanner *s, json_t *table, bool inside)
{
	struct toml_entry entry = {.table = table, .start = s->at, .inside = inside};
	_cleanup_strv_ struct strv names = {0};
	json_t *value = NULL;
	size_t index;
	int r;

	r = toml_scan_names(s, &names);
	if (r == 0)
		r = toml_expect(s, "=", "'=' is expected behind a name");
	for (size_t i = 0; i + 1 < names.count && r == 0; i++) {
		r = toml_enter(s, entry.start, &table, names.items[i]);
		entry.table = table;
		if (r == 0)
			r = toml_add_entry(s->toml, &entry);
	}
	if (r < 0)
		return r;
	if (json_object_get(table, names.items[names.count - 1]))
		return toml_refuse(s, entry.start, "this is there already, further up");
	toml_skip_blanks(s);
	entry.value_start = s->at;
	entry.key = steal_ptr(names.items[names.count - 1]);
	index = s->toml->count;
	r = toml_add_entry(s->toml, &entry);
	if (r < 0) {
		free(entry.key);
		return r;
	}
	r = toml_scan_value(s, &value);
	if (r < 0)
		return r;
	s->toml->entries[index].end = s->at;
	if (json_is_object(value) || json_is_array(value))
		s->toml->entries[index].value = value;
	return json_object_set_new(table, entry.key, value) < 0 ? -ENOMEM : 0;
}

static int toml_scan_inline_table(struct scanner *s, json_t *table)
{
	int r;

	s->at++;
	toml_skip_blanks(s);
	for (bool first = true; toml_peek(s) != '}'; first = false) {
		r = first ? 0 : toml_expect(s, ",", "',' or '}' is expected");
		toml_skip_blanks(s);
		if (r == 0)
			r = toml_scan_pair(s, table, true);
		if (r < 0)
			return r;
		toml_skip_blanks(s);
	}
	s->at++;
	return 0;
}

static int toml_scan_array(struct scanner *s, json_t *array)
{
	int r;

	s->at++;
	for (;;) {
		json_t *item = NULL;

		r = toml_skip_lines(s);
		if (r < 0 || toml_peek(s) == ']')
			break;
		r = toml_scan_value(s, &item);
		if (r == 0 && json_array_append_new(array, item) < 0)
			r = -ENOMEM;
		if (r == 0)
			r = toml_skip_lines(s);
		if (r == 0 && toml_peek(s) != ']')
			r = toml_expect(s, ",", "',' or ']' is expected");
		if (r < 0)
			return r;
	}
	s->at++;
	return r;
}

/* Numbers, dates and times; their values are not needed here. */
static int toml_scan_scalar(struct scanner *s, json_t **ret)
{
	static const char *const words[] = {"true", "false", "inf", "nan"};
	const char *word = s->text->data + s->at;
	size_t start = s->at, length;
	char *end;

	while (toml_is_bare(toml_peek(s)) || (toml_peek(s) && strchr("+.:", toml_peek(s))))
		s->at++;
	/* A date and its time may have a space between them. */
	if (s->at - start == 10 && word[4] == '-' && toml_peek(s) == ' ' && s->at + 1 < s->text->size &&
	    isdigit((unsigned char)word[11]))
		for (s->at++; isdigit((unsigned char)toml_peek(s)) || (toml_peek(s) && strchr("+-.:Z", toml_peek(s)));)
			s->at++;
	length = s->at - start;
	if (length && (isdigit((unsigned char)*word) || ((*word == '+' || *word == '-') && length > 1))) {
		long long number = strtoll(word, &end, 10);

		*ret = end == word + length ? json_integer(number) : json_stringn(word, length);
		return *ret ? 0 : -ENOMEM;
	}
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (length == strlen(words[i]) && memcmp(word, words[i], length) == 0) {
			*ret = i < 2 ? json_boolean(i == 0) : json_string(words[i]);
			return *ret ? 0 : -ENOMEM;
		}
	return toml_refuse(s, start, "a value is expected");
}

static int toml_scan_value(struct scanner *s, json_t **ret)
{
	char first = toml_peek(s);
	json_t *value = NULL;
	int r = 0;

	if (first == '[' || first == '{')
		value = first == '[' ? json_array() : json_object();
	if (s->depth >= DEPTH_MAX)
		r = toml_refuse(s, s->at, "nested too deeply");
	else if ((first == '[' || first == '{') && !value)
		r = -ENOMEM;
	s->depth++;
	if (r == 0 && (first == '"' || first == '\''))
		r = toml_scan_string(s, &value);
	else if (r == 0)
		r = first == '['   ? toml_scan_array(s, value)
		    : first == '{' ? toml_scan_inline_table(s, value)
				   : toml_scan_scalar(s, &value);
	s->depth--;
	if (r < 0)
		json_decref(value);
	else
		*ret = value;
	return r;
}

/* A new table at the end of the array of this name. */
static int toml_append_table(struct scanner *s, size_t start, json_t **table, const char *name)
{
	json_t *array = json_object_get(*table, name), *next = json_object();

	if (!array) {
		array = json_array();
		if (json_object_set_new(*table, name, array) < 0)
			array = NULL;
	}
	if (!json_is_array(array) || toml_is_closed(s->toml, array, false)) {
		json_decref(next);
		return array ? toml_refuse(s, start, "this is there already, further up") : -ENOMEM;
	}
	*table = next;
	return json_array_append_new(array, next) < 0 ? -ENOMEM : 0;
}

static int toml_scan_header(struct scanner *s)
{
	struct toml_entry entry = {.start = s->at, .header = true};
	_cleanup_strv_ struct strv names = {0};
	bool again = toml_is_next(s, "[[");
	json_t *table = s->toml->root;
	int r;

	s->at += again ? 2 : 1;
	r = toml_scan_names(s, &names);
	if (r == 0)
		r = toml_expect(s, again ? "]]" : "]", again ? "']]' is expected" : "']' is expected");
	for (size_t i = 0; i < names.count && r == 0; i++)
		r = again && i + 1 == names.count ? toml_append_table(s, entry.start, &table, names.items[i])
						  : toml_enter(s, entry.start, &table, names.items[i]);
	if (r == 0 && toml_is_closed(s->toml, table, true))
		r = toml_refuse(s, entry.start, "this is there already, further up");
	entry.table = s->table = table;
	entry.value_start = entry.end = s->at;
	return r < 0 ? r : toml_add_entry(s->toml, &entry);
}

static int toml_scan_line(struct scanner *s)
{
	size_t line = s->at, first = s->toml->count;
	int r = 0;

	toml_skip_blanks(s);
	if (toml_peek(s) == '[')
		r = toml_scan_header(s);
	else if (!toml_at_end(s) && !toml_newline_size(s) && toml_peek(s) != '#')
		r = toml_scan_pair(s, s->table, false);
	if (r == 0)
		r = toml_skip_comment(s);
	if (r == 0 && !toml_at_end(s) && !toml_newline_size(s))
		r = toml_refuse(s, s->at, "the end of the line is expected");
	if (r < 0)
		return r;
	s->at += toml_newline_size(s);
	for (size_t i = first; i < s->toml->count; i++) {
		s->toml->entries[i].line = line;
		s->toml->entries[i].line_end = s->at;
	}
	return 0;
}

/* The parsers of the engines want UTF-8, and so does what setup remembers. */
static int toml_check_characters(struct scanner *s)
{
	const struct text *text = s->text;

	for (size_t at = 0, size; at < text->size; at += size) {
		unsigned char first = (unsigned char)text->data[at];
		_cleanup_json_ json_t *character = NULL;

		size = first < 0xc0 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
		if (first >= 0x80 && size <= text->size - at)
			character = json_stringn(text->data + at, size);
		if (first >= 0x80 && !character)
			return toml_refuse(s, at, "bytes that are not UTF-8");
	}
	return 0;
}

void toml_text_clear(struct toml *toml)
{
	for (size_t i = 0; i < toml->count; i++)
		free(toml->entries[i].key);
	free(toml->entries);
	json_decref(toml->root);
	*toml = (struct toml){0};
}

int toml_text_scan(const struct text *text, struct toml *ret, struct text_error *ret_error)
{
	_cleanup_toml_ struct toml toml = {.root = json_object()};
	struct scanner s = {.text = text, .at = text_bom(text), .toml = &toml, .table = toml.root, .error = ret_error};
	int r;

	r = toml.root ? toml_check_characters(&s) : -ENOMEM;
	while (r == 0 && !toml_at_end(&s))
		r = toml_scan_line(&s);
	if (r == 0)
		*ret = steal_struct(&toml);
	return r;
}

/* ---- questions ---- */

int toml_text_check(const struct text *text, struct text_error *ret_error)
{
	_cleanup_toml_ struct toml toml = {0};

	return toml_text_scan(text, &toml, ret_error);
}

json_t *toml_text_walk(const struct toml *toml, const char *path, json_t **ret_above)
{
	_cleanup_strv_ struct strv names = {0};
	json_t *at = toml->root, *above = at;

	if (strv_split(path, "/", &names) < 0)
		return NULL;
	for (size_t i = 0; i < names.count && at; i++) {
		above = at;
		at = json_object_get(at, names.items[i]);
	}
	if (ret_above)
		*ret_above = at ? at : above;
	return at;
}

const struct toml_entry *toml_text_find(const struct toml *toml, const char *path, bool header)
{
	const char *slash = header ? NULL : strrchr(path, '/'), *key = header ? NULL : slash ? slash + 1 : path;
	_cleanup_free_ char *above = header ? strdup(path) : strndup(path, slash ? (size_t)(slash - path) : 0);
	const json_t *table = above ? toml_text_walk(toml, above, NULL) : NULL;

	for (size_t i = 0; i < toml->count && table; i++) {
		const struct toml_entry *entry = &toml->entries[i];

		if (entry->table == table && (header ? entry->header : entry->key && streq(entry->key, key)))
			return entry;
	}
	return NULL;
}

int toml_text_get(const struct text *text, const char *path, char **ret)
{
	_cleanup_toml_ struct toml toml = {0};
	const struct toml_entry *entry;
	struct text_error error;
	int r;

	r = toml_text_scan(text, &toml, &error);
	if (r < 0)
		return r;
	entry = toml_text_find(&toml, path, false);
	if (!entry)
		return -ENOENT;
	*ret = strndup(text->data + entry->value_start, entry->end - entry->value_start);
	return *ret ? 0 : -ENOMEM;
}

int toml_text_read(const struct text *text, const char *path, json_t **ret)
{
	_cleanup_toml_ struct toml toml = {0};
	struct text_error error;
	int r;

	r = toml_text_scan(text, &toml, &error);
	if (r == 0)
		*ret = json_incref(toml_text_walk(&toml, path, NULL));
	return r == 0 && !*ret ? -ENOENT : r;
}

int toml_text_get_string(const struct text *text, const char *path, char **ret)
{
	_cleanup_json_ json_t *json = NULL;
	int r;

	r = toml_text_read(text, path, &json);
	if (r < 0 || !json_is_string(json))
		return r < 0 ? r : -ENOENT;
	*ret = strdup(json_string_value(json));
	return *ret ? 0 : -ENOMEM;
}

bool toml_text_mentions(const struct text *text, const char *path)
{
	_cleanup_json_ json_t *json = NULL;

	return toml_text_read(text, path, &json) == 0;
}
