/* SPDX-License-Identifier: Apache-2.0 */

#include "engines/toml_scan.h"

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

static size_t newline_size(const struct scanner *s)
{
	return peek(s) == '\n' ? 1 : is_next(s, "\r\n") ? 2 : 0;
}

/* What may be behind the last thing on a line. */
static int skip_comment(struct scanner *s)
{
	skip_blanks(s);
	if (peek(s) != '#')
		return 0;
	for (; !at_end(s) && !newline_size(s); s->at++)
		if ((unsigned char)peek(s) < ' ' && peek(s) != '\t')
			return wrong(s, "a control character in a comment");
	return 0;
}

/* What may be between the items of an array. */
static int skip_lines(struct scanner *s)
{
	size_t newline;
	int r;

	do {
		r = skip_comment(s);
		newline = newline_size(s);
		s->at += r < 0 ? 0 : newline;
	} while (r == 0 && newline);
	return r;
}

/* ---- strings and names ---- */

static int skip_string(struct scanner *s)
{
	bool lines = is_next(s, "\"\"\"") || is_next(s, "'''"), escapes = peek(s) == '"';
	const char *quotes = s->text->data + s->at;
	size_t length = lines ? 3 : 1;

	for (s->at += length; !at_end(s); s->at++) {
		if (text_is_at(s->text, s->at, quotes, length)) {
			s->at += length;
			/* Quotes may stand in front of those that end a text of several lines. */
			for (int extra = 0; lines && extra < 2 && peek(s) == *quotes; extra++)
				s->at++;
			return 0;
		}
		if (peek(s) == '\\' && escapes)
			s->at++;
		else if ((unsigned char)peek(s) < ' ' && peek(s) != '\t' && !(lines && newline_size(s)))
			return wrong(s, "a string that does not end on its line");
	}
	s->at = s->text->size;
	return wrong(s, "a string that does not end");
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
		r = skip_string(s);
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
	size_t length = strlen(*path);
	char *longer = realloc(*path, length + 2 * strlen(name) + 2), *end = longer + length;

	if (!longer)
		return -ENOMEM;
	*path = longer;
	if (length)
		*end++ = '/';
	for (; *name; name++) {
		if (*name != '/' && *name != '[') {
			*end++ = *name;
			continue;
		}
		*end++ = '~';
		*end++ = *name == '/' ? '1' : '2';
	}
	*end = '\0';
	return 0;
}

/* Names with dots between them, appended to a path. */
static int scan_names(struct scanner *s, char **path)
{
	int r;

	for (;; s->at++) {
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
	}
}

/* ---- entries ---- */

static int add_entry(struct scanner *s, const struct toml_entry *entry, const char *path)
{
	struct toml *toml = s->toml;
	struct toml_entry *more = array_grow(toml->entries, toml->count, sizeof(*more));

	if (!more)
		return -ENOMEM;
	toml->entries = more;
	more[toml->count] = *entry;
	more[toml->count].path = strdup(path);
	return more[toml->count].path ? (toml->count++, 0) : -ENOMEM;
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
	entry.value = s->at;
	index = s->toml->count;
	r = add_entry(s, &entry, path);
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
	int r;

	s->at++;
	for (size_t index = 0;; index++) {
		_cleanup_free_ char *item = NULL;

		r = skip_lines(s);
		if (r < 0 || peek(s) == ']')
			break;
		r = str_format(&item, "%s[%zu]", path, index);
		if (r == 0)
			r = scan_value(s, item);
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
	static const char *const words[] = {"true", "false", "inf", "nan"};
	const char *word = s->text->data + s->at;
	size_t start = s->at, length;

	while (is_bare(peek(s)) || (peek(s) && strchr("+.:", peek(s))))
		s->at++;
	/* A date and its time may have a space between them. */
	if (s->at - start == 10 && word[4] == '-' && peek(s) == ' ' && s->at + 1 < s->text->size && isdigit((unsigned char)word[11]))
		for (s->at++; isdigit((unsigned char)peek(s)) || (peek(s) && strchr("+-.:Z", peek(s)));)
			s->at++;
	length = s->at - start;
	if (length && (isdigit((unsigned char)*word) || ((*word == '+' || *word == '-') && length > 1)))
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (length == strlen(words[i]) && memcmp(word, words[i], length) == 0)
			return 0;
	s->at = start;
	return wrong(s, "a value is expected");
}

static int scan_value(struct scanner *s, const char *path)
{
	int r;

	if (++s->depth > DEPTH_MAX)
		return wrong(s, "nested too deeply");
	if (peek(s) == '"' || peek(s) == '\'')
		r = skip_string(s);
	else
		r = peek(s) == '[' ? scan_array(s, path) : peek(s) == '{' ? scan_inline_table(s, path) : scan_scalar(s);
	s->depth--;
	return r;
}

/* What @path has behind the names of @numbered, in which arrays' tables have their number; NULL if those are others. */
static const char *skip_names(const char *path, const char *numbered)
{
	for (; *numbered; numbered++)
		if (*numbered == '[')
			numbered = strchr(numbered, ']');
		else if (*path++ != *numbered)
			return NULL;
	return !*path || *path == '/' ? path : NULL;
}

/* Gives every name of a header that is an array's the number of its table: the last one, or the one that begins here. */
static int number_names(const struct toml *toml, char **path, bool again)
{
	_cleanup_free_ char *names = *path;
	const char *rest = NULL, *last = "";
	size_t i = toml->count;
	int length;

	while (!rest && i-- > 0)
		if (toml->entries[i].again && (rest = skip_names(names, toml->entries[i].path)))
			last = toml->entries[i].path;
	*path = NULL;
	if (!again || !rest || *rest)
		return str_format(path, "%s%s%s", last, rest ? rest : names, again ? "[0]" : "");
	length = (int)(strrchr(last, '[') - last);
	return str_format(path, "%.*s[%lu]", length, last, strtoul(last + length + 1, NULL, 10) + 1);
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
	r = number_names(s->toml, &path, again);
	if (r < 0)
		return r;
	entry.table = strlen(path);
	entry.value = entry.end = s->at;
	r = add_entry(s, &entry, path);
	if (r < 0)
		return r;
	free(s->table);
	s->table = steal_ptr(path);
	return 0;
}

static int scan_line(struct scanner *s)
{
	size_t line = s->at, first = s->toml->count;
	int r = 0;

	skip_blanks(s);
	if (peek(s) == '[')
		r = scan_header(s);
	else if (!at_end(s) && !newline_size(s) && peek(s) != '#')
		r = scan_pair(s, s->table, false);
	if (r == 0)
		r = skip_comment(s);
	if (r == 0 && !at_end(s) && !newline_size(s))
		r = wrong(s, "the end of the line is expected");
	if (r < 0)
		return r;
	s->at += newline_size(s);
	for (size_t i = first; i < s->toml->count; i++) {
		s->toml->entries[i].line = line;
		s->toml->entries[i].line_end = s->at;
	}
	return 0;
}

/* ---- the whole ---- */

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
		if (!streq(sorted[i - 1]->path, sorted[i]->path))
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

const struct toml_entry *toml_find(const struct toml *toml, enum toml_kind kind, const char *path)
{
	for (size_t i = 0; i < toml->count; i++)
		if (toml->entries[i].kind == kind && streq(toml->entries[i].path, path))
			return &toml->entries[i];
	return NULL;
}

bool toml_is_below(const char *path, const char *above, bool itself)
{
	size_t length = strlen(above);

	return !length || (strncmp(path, above, length) == 0 && (path[length] == '/' || (itself && !path[length])));
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

/* The parsers of the engines want UTF-8, and so does what setup remembers. */
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
	if (r == 0)
		*ret = steal_struct(&toml);
	return r;
}
