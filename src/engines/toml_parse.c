/* SPDX-License-Identifier: Apache-2.0 */

#include "engines/text.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/str.h"

enum {
	DEPTH_MAX = 64,
	ENTRIES_MAX = 16384, /* each is looked for among all; containerd's whole default has some 300 */
};

struct scanner {
	const struct text_buffer *text;
	size_t at;
	struct toml *toml;
	json_t *table; /* of the header above, borrowed */
	unsigned depth;
	struct text_buffer_error *error;
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
	return text_buffer_is_at(s->text, s->at, what, strlen(what));
}

static int toml_refuse(const struct scanner *s, size_t at, const char *reason)
{
	return text_buffer_refuse(s->text, at, reason, s->error);
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

/* What may be between the items of an array or, without @lines, of an inline table. */
static int toml_skip_between(struct scanner *s, bool lines)
{
	int r = 0;

	toml_skip_blanks(s);
	while (lines && r == 0 && (toml_peek(s) == '#' || toml_newline_size(s))) {
		r = toml_skip_comment(s);
		s->at += r < 0 ? 0 : toml_newline_size(s);
		toml_skip_blanks(s);
	}
	return r;
}

/* ---- strings and names ---- */

/*
 * JSON has the same escapes, but for \U and the line end that counts for nothing. Return: null for what it cannot
 * decode.
 */
static json_t *toml_decode_string(const char *text, size_t size)
{
	_cleanup_free_ char *json = malloc(2 * size + 2);
	json_t *string;
	size_t length = 0;

	if (!json)
		return NULL;
	json[length++] = '"';
	for (size_t i = 0; i < size; i++) {
		size_t blanks = text[i] == '\\' ? strspn(text + i + 1, " \t\r\n") : 0;

		if (blanks && memchr(text + i, '\n', blanks + 1)) {
			i += blanks;
			continue;
		}
		if (text[i] == '"' || (unsigned char)text[i] < ' ')
			json[length++] = '\\';
		json[length++] = text[i] == '\n' ? 'n' : text[i] == '\r' ? 'r' : text[i] == '\t' ? 't' : text[i];
		if (text[i] == '\\')
			json[length++] = text[++i];
	}
	json[length++] = '"';
	string = json_loadb(json, length, JSON_DECODE_ANY, NULL);
	return string ? string : json_null();
}

static bool toml_is_long_string(const struct scanner *s)
{
	return toml_is_next(s, "\"\"\"") || toml_is_next(s, "'''");
}

/* "\u00e4"; \x is TOML 1.1, as is \e. */
static size_t toml_escape_digits(char kind)
{
	switch (kind) {
	case 'x':
		return 2;
	case 'u':
		return 4;
	case 'U':
		return 8;
	default:
		return 0;
	}
}

/* To the last character of an escape. In a string of several lines, blanks may stand between it and the line's end. */
static bool toml_skip_escape(struct scanner *s, bool lines)
{
	const char *text = s->text->data + s->at + 1;
	size_t digits = toml_escape_digits(*text), blanks = lines ? strspn(text, " \t") : 0;

	if (digits ? strspn(text + 1, "0123456789abcdefABCDEF") < digits
		   : !strchr(blanks ? "\r\n" : "btnfre\"\\\r\n", text[blanks]))
		return false;
	s->at += 1 + digits;
	return true;
}

/* To the @length quotes that end a string, from those that begin it. */
static int toml_skip_string(struct scanner *s, size_t length)
{
	const char *quotes = s->text->data + s->at;
	bool lines = length > 1;

	for (s->at += length; !toml_at_end(s) && !text_buffer_is_at(s->text, s->at, quotes, length); s->at++) {
		if (toml_peek(s) == '\\' && *quotes == '"' && !toml_skip_escape(s, lines))
			return toml_refuse(s, s->at, "an escape that TOML does not have");
		if (!toml_at_end(s) && (unsigned char)toml_peek(s) < ' ' && toml_peek(s) != '\t' &&
		    !(lines && toml_newline_size(s)))
			return toml_refuse(s, s->at, "a string that does not end on its line");
	}
	if (toml_at_end(s))
		return toml_refuse(s, s->text->size, "a string that does not end");
	/* Two quotes may precede those that end a string of several lines. */
	for (int extra = 0;
	     lines && extra < 2 && s->at + length < s->text->size && s->text->data[s->at + length] == *quotes; extra++)
		s->at++;
	return 0;
}

static int toml_scan_string(struct scanner *s, json_t **ret)
{
	bool lines = toml_is_long_string(s), escapes = toml_peek(s) == '"';
	size_t length = lines ? 3 : 1, size;
	const char *first = s->text->data + s->at + length;
	int r;

	r = toml_skip_string(s, length);
	if (r < 0)
		return r;
	/* A newline at its start is not part of a string of several lines. */
	if (lines)
		first += *first == '\n' ? 1 : strncmp(first, "\r\n", 2) == 0 ? 2 : 0;
	size = (size_t)(s->text->data + s->at - first);
	s->at += length;
	*ret = escapes ? toml_decode_string(first, size) : json_stringn(first, size);
	return *ret ? 0 : -ENOMEM;
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
		r = toml_is_long_string(s) ? 0 : toml_scan_string(s, &quoted);
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
		r = names->count < DEPTH_MAX ? toml_scan_name(s, names) : toml_refuse(s, s->at, "nested too deeply");
		if (r < 0)
			return r;
		toml_skip_blanks(s);
		if (toml_peek(s) != '.')
			return 0;
	}
}

/* ---- tables ---- */

static int toml_add_entry(struct scanner *s, const struct toml_entry *entry)
{
	struct toml *toml = s->toml;
	struct toml_entry *more;

	if (toml->count >= ENTRIES_MAX)
		return toml_refuse(s, entry->start, "more keys and tables than any real file has");
	more = array_grow(toml->entries, toml->count, sizeof(*more));
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

/*
 * The table of this name in another, made if it is missing; of an array the last one, or a new one at its end.
 */
static int toml_enter(struct scanner *s, size_t start, json_t **table, const char *name, bool append)
{
	json_t *next = json_object_get(*table, name);

	if (!next) {
		next = append ? json_array() : json_object();
		if (!next || json_object_set_new(*table, name, next) < 0)
			return -ENOMEM;
	}
	if (toml_is_closed(s->toml, next, false) || (append && !json_is_array(next)))
		return toml_refuse(s, start, "this is there already, further up");
	if (append && json_array_append_new(next, json_object()) < 0)
		return -ENOMEM;
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
		r = toml_enter(s, entry.start, &table, names.items[i], false);
		entry.table = table;
		if (r == 0)
			r = toml_add_entry(s, &entry);
	}
	if (r < 0)
		return r;
	if (json_object_get(table, names.items[names.count - 1]))
		return toml_refuse(s, entry.start, "this is there already, further up");
	toml_skip_blanks(s);
	entry.value_start = s->at;
	entry.key = steal_ptr(names.items[names.count - 1]);
	index = s->toml->count;
	r = toml_add_entry(s, &entry);
	if (r < 0) {
		free(entry.key);
		return r;
	}
	r = toml_scan_value(s, &value);
	if (r < 0)
		return r;
	s->toml->entries[index].value_end = s->at;
	if (json_is_object(value) || json_is_array(value))
		s->toml->entries[index].value = value;
	return json_object_set_new(table, entry.key, value) < 0 ? -ENOMEM : 0;
}

static int toml_scan_item(struct scanner *s, json_t *array)
{
	json_t *item = NULL;
	int r = toml_scan_value(s, &item);

	return r == 0 && json_array_append_new(array, item) < 0 ? -ENOMEM : r;
}

/* Values in brackets, or pairs in braces, with commas between them. Only the former may be on several lines. */
static int toml_scan_list(struct scanner *s, json_t *list)
{
	bool array = json_is_array(list), comma = false;
	const char *end = array ? "]" : "}";
	int r = 0;

	for (s->at++; r == 0;) {
		r = toml_skip_between(s, array);
		if (r == 0 && toml_is_next(s, end) && (array || !comma))
			break;
		if (r == 0)
			r = array ? toml_scan_item(s, list) : toml_scan_pair(s, list, true);
		if (r == 0)
			r = toml_skip_between(s, array);
		comma = toml_peek(s) == ',';
		if (r == 0 && !toml_is_next(s, end))
			r = toml_expect(s, ",", array ? "',' or ']' is expected" : "',' or '}' is expected");
	}
	s->at++;
	return r;
}

/* Return: null for what JSON has no value for. */
static json_t *toml_decode_number(const char *word, size_t length)
{
	char digits[64], *end, *real_end;
	int base = 10;
	size_t size = 0;
	long long number;
	double real;

	for (size_t i = 0; i < length && size + 1 < sizeof(digits); i++)
		if (word[i] != '_')
			digits[size++] = word[i];
	digits[size] = '\0';
	if (digits[0] == '0' && digits[1] && strchr("box", digits[1]))
		base = digits[1] == 'b' ? 2 : digits[1] == 'o' ? 8 : 16;
	errno = 0;
	number = strtoll(base == 10 ? digits : digits + 2, &end, base);
	if (!*end && errno == 0)
		return json_integer(number);
	real = strtod(digits, &real_end);
	return *end && !*real_end && isfinite(real) ? json_real(real) : json_null();
}

/* Return: NULL if it is not a value. */
static json_t *toml_decode_word(const char *word, size_t length)
{
	static const char *const words[] = {"true", "false", "inf", "nan"};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (length == strlen(words[i]) && memcmp(word, words[i], length) == 0)
			return i < 2 ? json_boolean(i == 0) : json_null();
	if (length && (isdigit((unsigned char)*word) || ((*word == '+' || *word == '-') && length > 1)))
		return toml_decode_number(word, length);
	return NULL;
}

static void toml_skip_scalar(struct scanner *s)
{
	const char *word = s->text->data + s->at;
	size_t start = s->at;

	while (toml_is_bare(toml_peek(s)) || (toml_peek(s) && strchr("+.:", toml_peek(s))))
		s->at++;
	/* A date and its time may have a space between them. */
	if (s->at - start == 10 && word[4] == '-' && toml_peek(s) == ' ' && s->at + 1 < s->text->size &&
	    isdigit((unsigned char)word[11]))
		for (s->at++; isdigit((unsigned char)toml_peek(s)) || (toml_peek(s) && strchr("+-.:Z", toml_peek(s)));)
			s->at++;
}

/* Numbers, dates, times and words. */
static int toml_scan_scalar(struct scanner *s, json_t **ret)
{
	size_t start = s->at;

	toml_skip_scalar(s);
	*ret = toml_decode_word(s->text->data + start, s->at - start);
	return *ret ? 0 : toml_refuse(s, start, "a value is expected");
}

static int toml_scan_value(struct scanner *s, json_t **ret)
{
	char first = toml_peek(s);
	json_t *list;
	int r;

	if (first == '"' || first == '\'')
		return toml_scan_string(s, ret);
	if (first != '[' && first != '{')
		return toml_scan_scalar(s, ret);
	if (s->depth >= DEPTH_MAX)
		return toml_refuse(s, s->at, "nested too deeply");
	list = first == '[' ? json_array() : json_object();
	s->depth++;
	r = list ? toml_scan_list(s, list) : -ENOMEM;
	s->depth--;
	if (r < 0)
		json_decref(list);
	else
		*ret = list;
	return r;
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
		r = toml_enter(s, entry.start, &table, names.items[i], again && i + 1 == names.count);
	if (r == 0 && toml_is_closed(s->toml, table, true))
		r = toml_refuse(s, entry.start, "this is there already, further up");
	entry.table = s->table = table;
	entry.value_start = entry.value_end = s->at;
	return r < 0 ? r : toml_add_entry(s, &entry);
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
		s->toml->entries[i].end_of_line = s->at;
	}
	return 0;
}

/* The parsers of the engines want UTF-8, and so does what setup remembers. */
static int toml_check_characters(struct scanner *s)
{
	const struct text_buffer *text = s->text;

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

void toml_parse_clear(struct toml *toml)
{
	for (size_t i = 0; i < toml->count; i++)
		free(toml->entries[i].key);
	free(toml->entries);
	json_decref(toml->root);
	*toml = (struct toml){0};
}

int toml_parse_scan(const struct text_buffer *text, struct toml *ret, struct text_buffer_error *ret_error)
{
	_cleanup_toml_ struct toml toml = {.root = json_object()};
	struct scanner s = {
		.text = text, .at = text_buffer_bom(text), .toml = &toml, .table = toml.root, .error = ret_error};
	int r;

	r = toml.root ? toml_check_characters(&s) : -ENOMEM;
	while (r == 0 && !toml_at_end(&s))
		r = toml_scan_line(&s);
	if (r == 0)
		*ret = steal_struct(&toml);
	return r;
}

int toml_parse_read(const struct text_buffer *text, json_t **ret, struct text_buffer_error *ret_error)
{
	_cleanup_toml_ struct toml toml = {0};
	int r = toml_parse_scan(text, &toml, ret_error);

	if (r == 0)
		*ret = steal_ptr(toml.root);
	return r;
}

const struct toml_entry *toml_parse_find(const struct toml *toml, const json_t *table, const char *key)
{
	for (size_t i = 0; i < toml->count; i++) {
		const struct toml_entry *entry = &toml->entries[i];

		if (entry->table == table && (key ? entry->key && streq(entry->key, key) : entry->header))
			return entry;
	}
	return NULL;
}
