/* SPDX-License-Identifier: Apache-2.0 */

#include "engines/toml_scan.h"

#include <ctype.h>
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"

enum { DEPTH_MAX = 64 };

struct scanner {
	const struct text *text;
	size_t at;
	struct toml *toml;
	char *table; /* the header above, as a path */
	unsigned depth;
	struct text_error *error;
};

static char peek(const struct scanner *s)
{
	return s->at < s->text->size ? s->text->data[s->at] : '\0';
}

static bool at_end(const struct scanner *s)
{
	return s->at >= s->text->size;
}

static bool is_next(const struct scanner *s, const char *what)
{
	return text_is_at(s->text, s->at, what, strlen(what));
}

static int wrong(struct scanner *s, const char *reason)
{
	text_locate(s->text, s->at, s->error);
	(void)snprintf(s->error->reason, sizeof(s->error->reason), "%s", reason);
	return -EINVAL;
}

static void skip_blanks(struct scanner *s)
{
	while (peek(s) == ' ' || peek(s) == '\t')
		s->at++;
}

static bool at_newline(const struct scanner *s)
{
	return peek(s) == '\n' || is_next(s, "\r\n");
}

static int skip_comment(struct scanner *s)
{
	if (peek(s) != '#')
		return 0;
	while (!at_end(s) && !at_newline(s)) {
		if ((unsigned char)peek(s) < ' ' && peek(s) != '\t')
			return wrong(s, "a control character in a comment");
		s->at++;
	}
	return 0;
}

/* What may be between the items of an array. */
static int skip_lines(struct scanner *s)
{
	int r = 0;

	do {
		skip_blanks(s);
		r = skip_comment(s);
		if (r < 0 || !at_newline(s))
			return r;
		s->at += peek(s) == '\r' ? 2 : 1;
	} while (!at_end(s));
	return 0;
}

/* ---- strings and names ---- */

static int skip_string(struct scanner *s, const char *quotes, bool escapes, bool lines)
{
	size_t length = strlen(quotes);

	for (s->at += length; !at_end(s); s->at++) {
		char c = peek(s);

		if (is_next(s, quotes)) {
			s->at += length;
			/* Quotes may stand in front of those that end a text of several lines. */
			for (int extra = 0; lines && extra < 2 && peek(s) == quotes[0]; extra++)
				s->at++;
			return 0;
		}
		if (c == '\\' && escapes)
			s->at++;
		else if ((unsigned char)c < ' ' && c != '\t' && !(lines && (c == '\n' || is_next(s, "\r\n"))))
			return wrong(s, "a string that does not end on its line");
	}
	s->at = s->text->size;
	return wrong(s, "a string that does not end");
}

static int skip_any_string(struct scanner *s)
{
	if (is_next(s, "\"\"\""))
		return skip_string(s, "\"\"\"", true, true);
	if (is_next(s, "'''"))
		return skip_string(s, "'''", false, true);
	return skip_string(s, peek(s) == '"' ? "\"" : "'", peek(s) == '"', false);
}

static bool is_bare(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '-';
}

/* A name in quotes, of which JSON has the same escapes, but for one. */
static int decode_name(struct scanner *s, size_t start, char **ret)
{
	const char *quoted = s->text->data + start;
	size_t size = s->at - start;
	_cleanup_json_ json_t *json = NULL;

	if (*quoted == '\'' || !memchr(quoted, '\\', size)) {
		*ret = strndup(quoted + 1, size - 2);
		return *ret ? 0 : -ENOMEM;
	}
	json = json_loadb(quoted, size, JSON_DECODE_ANY, NULL);
	if (!json) {
		s->at = start;
		return wrong(s, "a name that cannot be read");
	}
	*ret = strdup(json_string_value(json));
	return *ret ? 0 : -ENOMEM;
}

static int scan_name(struct scanner *s, char **ret)
{
	size_t start = s->at;
	int r;

	if (peek(s) == '"' || peek(s) == '\'') {
		if (is_next(s, "\"\"\"") || is_next(s, "'''"))
			return wrong(s, "a name of several lines");
		r = skip_any_string(s);
		return r < 0 ? r : decode_name(s, start, ret);
	}
	while (is_bare(peek(s)))
		s->at++;
	if (s->at == start)
		return wrong(s, "a name is expected");
	*ret = strndup(s->text->data + start, s->at - start);
	return *ret ? 0 : -ENOMEM;
}

static int append_name(char **path, const char *name)
{
	_cleanup_text_ struct text longer = {0};
	int r;

	r = text_append(&longer, "%s%s", *path, **path ? "/" : "");
	for (const char *c = name; *c && r == 0; c++)
		r = *c == '/' ? text_append(&longer, "~1") : text_append(&longer, "%c", *c);
	if (r < 0)
		return r;
	free(*path);
	*path = longer.data ? longer.data : strdup("");
	longer.data = NULL;
	return *path ? 0 : -ENOMEM;
}

/* Names with dots between them, appended to a path. */
static int scan_names(struct scanner *s, char **path)
{
	int r;

	for (;;) {
		_cleanup_free_ char *name = NULL;

		skip_blanks(s);
		r = scan_name(s, &name);
		if (r == 0)
			r = append_name(path, name);
		if (r < 0)
			return r;
		skip_blanks(s);
		if (peek(s) != '.')
			return 0;
		s->at++;
	}
}

/* ---- entries ---- */

static int add_entry(struct scanner *s, const struct toml_entry *entry)
{
	struct toml *toml = s->toml;
	struct toml_entry *more = toml->entries;

	/* The next power of two is the capacity. */
	if (!(toml->count & (toml->count - 1)))
		more = reallocarray(more, toml->count ? toml->count * 2 : 1, sizeof(*more));
	if (!more)
		return -ENOMEM;
	toml->entries = more;
	toml->entries[toml->count] = *entry;
	toml->entries[toml->count].path = strdup(entry->path);
	return toml->entries[toml->count].path ? (toml->count++, 0) : -ENOMEM;
}

static int scan_value(struct scanner *s, const char *path);

/* NAME = VALUE, below @above. */
static int scan_pair(struct scanner *s, const char *above, bool inside)
{
	_cleanup_free_ char *path = strdup(above);
	struct toml_entry entry = {.kind = TOML_KEY, .start = s->at, .inside = inside, .table = strlen(above)};
	size_t index;
	int r;

	if (!path)
		return -ENOMEM;
	r = scan_names(s, &path);
	if (r < 0)
		return r;
	if (peek(s) != '=')
		return wrong(s, "'=' is expected behind a name");
	s->at++;
	skip_blanks(s);
	entry.path = path;
	entry.value = s->at;
	index = s->toml->count;
	r = add_entry(s, &entry);
	if (r == 0)
		r = scan_value(s, path);
	if (r == 0)
		s->toml->entries[index].end = s->at;
	return r;
}

static int scan_inline_table(struct scanner *s, const char *path)
{
	int r;

	s->at++;
	skip_blanks(s);
	for (bool first = true; peek(s) != '}'; first = false) {
		if (!first && peek(s) != ',')
			return wrong(s, "',' or '}' is expected");
		s->at += !first;
		skip_blanks(s);
		r = scan_pair(s, path, true);
		if (r < 0)
			return r;
		skip_blanks(s);
	}
	s->at++;
	return 0;
}

static int scan_array(struct scanner *s, const char *path)
{
	size_t index = 0;
	int r;

	s->at++;
	for (;; index++) {
		_cleanup_free_ char *item = NULL;

		r = skip_lines(s);
		if (r < 0 || peek(s) == ']')
			break;
		item = text_format("%s[%zu]", path, index);
		r = item ? scan_value(s, item) : -ENOMEM;
		if (r == 0)
			r = skip_lines(s);
		if (r < 0)
			return r;
		if (peek(s) == ',')
			s->at++;
		else if (peek(s) != ']')
			return wrong(s, "',' or ']' is expected");
	}
	s->at++;
	return r;
}

/* Numbers, dates and times, of which nobody here wants to know the value. */
static int scan_scalar(struct scanner *s)
{
	size_t start = s->at, length;
	const char *word = s->text->data + start;

	while (is_bare(peek(s)) || (peek(s) && strchr("+.:", peek(s))))
		s->at++;
	/* A date and its time may have a space between them. */
	if (s->at - start == 10 && word[4] == '-' && peek(s) == ' ' && s->at + 1 < s->text->size && isdigit((unsigned char)word[11]))
		for (s->at++; isdigit((unsigned char)peek(s)) || (peek(s) && strchr("+-.:Z", peek(s)));)
			s->at++;
	length = s->at - start;
	if (length && (isdigit((unsigned char)*word) || ((*word == '+' || *word == '-') && length > 1)))
		return 0;
	for (size_t i = 0; i < 4; i++) {
		static const char *const words[] = {"true", "false", "inf", "nan"};

		if (length == strlen(words[i]) && memcmp(word, words[i], length) == 0)
			return 0;
	}
	s->at = start;
	return wrong(s, "a value is expected");
}

static int scan_value(struct scanner *s, const char *path)
{
	int r;

	if (++s->depth > DEPTH_MAX)
		return wrong(s, "nested too deeply");
	switch (peek(s)) {
	case '"':
	case '\'':
		r = skip_any_string(s);
		break;
	case '[':
		r = scan_array(s, path);
		break;
	case '{':
		r = scan_inline_table(s, path);
		break;
	default:
		r = scan_scalar(s);
	}
	s->depth--;
	return r;
}

/* Which table of an array the header begins, or is in: every name that is an array's gets the number of its last one. */
static size_t count_tables(const struct toml *toml, const char *path)
{
	size_t length = strlen(path), count = 0;

	for (size_t i = 0; i < toml->count; i++) {
		const struct toml_entry *entry = &toml->entries[i];

		if (entry->again && strncmp(entry->path, path, length) == 0 && entry->path[length] == '[' && !strchr(entry->path + length, '/'))
			count++;
	}
	return count;
}

static int number_names(const struct scanner *s, char **path, bool again)
{
	_cleanup_free_ char *names = strdup(*path);
	_cleanup_text_ struct text numbered = {0};
	int r = names ? 0 : -ENOMEM;

	for (char *name = names, *next; r == 0 && name; name = next) {
		size_t count;

		next = strchr(name, '/');
		if (next)
			*next++ = '\0';
		r = text_append(&numbered, "%s%s", name == names ? "" : "/", name);
		if (r < 0)
			break;
		count = count_tables(s->toml, numbered.data);
		if (again && !next)
			r = text_append(&numbered, "[%zu]", count);
		else if (count)
			r = text_append(&numbered, "[%zu]", count - 1);
	}
	if (r < 0)
		return r;
	free(*path);
	*path = numbered.data;
	numbered.data = NULL;
	return 0;
}

static int scan_header(struct scanner *s)
{
	bool again = is_next(s, "[[");
	_cleanup_free_ char *path = strdup("");
	struct toml_entry entry = {.kind = TOML_TABLE, .start = s->at, .again = again};
	int r;

	if (!path)
		return -ENOMEM;
	s->at += again ? 2 : 1;
	r = scan_names(s, &path);
	if (r < 0)
		return r;
	if (!is_next(s, again ? "]]" : "]"))
		return wrong(s, again ? "']]' is expected" : "']' is expected");
	s->at += again ? 2 : 1;
	r = number_names(s, &path, again);
	if (r < 0)
		return r;
	entry.path = path;
	entry.table = strlen(path);
	entry.value = entry.end = s->at;
	r = add_entry(s, &entry);
	if (r < 0)
		return r;
	free(s->table);
	s->table = path;
	path = NULL;
	return 0;
}

static int scan_line(struct scanner *s)
{
	size_t line = s->at, first = s->toml->count;
	int r = 0;

	skip_blanks(s);
	if (peek(s) == '[')
		r = scan_header(s);
	else if (!at_end(s) && !at_newline(s) && peek(s) != '#')
		r = scan_pair(s, s->table, false);
	if (r < 0)
		return r;
	skip_blanks(s);
	r = skip_comment(s);
	if (r < 0)
		return r;
	if (!at_end(s) && !at_newline(s))
		return wrong(s, "the end of the line is expected");
	if (!at_end(s))
		s->at += peek(s) == '\r' ? 2 : 1;
	for (size_t i = first; i < s->toml->count; i++) {
		s->toml->entries[i].line = line;
		s->toml->entries[i].line_end = s->at;
	}
	return 0;
}

/* ---- what is there twice ---- */

static int compare_entries(const void *a, const void *b)
{
	const struct toml_entry *const *left = a, *const *right = b;
	int order = strcmp((*left)->path, (*right)->path);

	return order ? order : ((*left)->start > (*right)->start) - ((*left)->start < (*right)->start);
}

static int find_twice(struct scanner *s)
{
	size_t count = s->toml->count;
	_cleanup_free_ const struct toml_entry **sorted = calloc(count + 1, sizeof(struct toml_entry *));

	if (!sorted)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		sorted[i] = &s->toml->entries[i];
	qsort(sorted, count, sizeof(struct toml_entry *), compare_entries);
	for (size_t i = 1; i < count; i++) {
		if (strcmp(sorted[i - 1]->path, sorted[i]->path) != 0)
			continue;
		s->at = sorted[i]->start;
		return wrong(s, "this is there already, further up");
	}
	return 0;
}

void toml_clear(struct toml *toml)
{
	for (size_t i = 0; i < toml->count; i++)
		free(toml->entries[i].path);
	free(toml->entries);
	*toml = (struct toml){0};
}

static size_t character_size(unsigned char first)
{
	return first < 0xc0 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
}

static bool is_utf8(const struct text *text, size_t at, size_t size)
{
	_cleanup_json_ json_t *string = size <= text->size - at ? json_stringn(text->data + at, size) : NULL;

	return string;
}

/* The parsers of the engines want UTF-8, and so does the journal. */
static int check_characters(struct scanner *s)
{
	const struct text *text = s->text;
	size_t at = 0;

	if (!text->size || is_utf8(text, 0, text->size))
		return 0;
	while (at < text->size && is_utf8(text, at, character_size((unsigned char)text->data[at])))
		at += character_size((unsigned char)text->data[at]);
	s->at = at;
	return wrong(s, "bytes that are not UTF-8");
}

int toml_scan(const struct text *text, struct toml *ret, struct text_error *ret_error)
{
	_cleanup_toml_ struct toml toml = {0};
	struct scanner s = {.text = text, .at = text_bom(text), .toml = &toml, .error = ret_error};
	int r;

	s.table = strdup("");
	r = s.table ? check_characters(&s) : -ENOMEM;
	while (r == 0 && !at_end(&s))
		r = scan_line(&s);
	if (r == 0)
		r = find_twice(&s);
	free(s.table);
	if (r < 0)
		return r;
	*ret = toml;
	toml = (struct toml){0};
	return 0;
}
