/* SPDX-License-Identifier: Apache-2.0 */

#include "oci/json_aside.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/json_mark.h"
#include "base/str.h"

/* "START+LENGTH" of the text, and the quote at the end. */
enum { PLACE_MAX = JSON_MARK_SIZE + 48 };

struct aside_text {
	const char *data, *at, *end;
	char *to; /* never longer than what has been read */
	char mark[JSON_MARK_SIZE + 1];
};

static void aside_skip_blanks(struct aside_text *text)
{
	while (text->at < text->end &&
	       (*text->at == ' ' || *text->at == '\n' || *text->at == '\t' || *text->at == '\r'))
		text->at++;
}

/* A string, or whatever ends with its closing quote. Return: whether it ends. */
static bool aside_skip_string(struct aside_text *text)
{
	const char *at = text->at + 1, *end = text->end;

	while (at < end && *at != '"')
		at += *at == '\\' && at + 1 < end ? 2 : 1;
	text->at = at < end ? at + 1 : end;
	return at < end;
}

/* Return: how much deeper it is behind the next character, string or word of a value. */
static int aside_skip_piece(struct aside_text *text)
{
	switch (*text->at) {
	case '"':
		return aside_skip_string(text) ? 0 : -2;
	case '{':
	case '[':
		text->at++;
		return 1;
	case '}':
	case ']':
		text->at++;
		return -1;
	default:
		text->at++;
		return 0;
	}
}

/* Return: whether the value ends before the text does. A word or number ends where what holds it goes on. */
static bool aside_skip_value(struct aside_text *text)
{
	int depth = 0;

	if (text->at < text->end && *text->at != '"' && *text->at != '{' && *text->at != '[') {
		while (text->at < text->end && !memchr(",]} \n\t\r", *text->at, 7))
			text->at++;
		return text->at < text->end;
	}
	while (text->at < text->end) {
		int more = aside_skip_piece(text);

		if (more < -1)
			return false;
		depth += more;
		if (depth == 0)
			return true;
	}
	return false;
}

static void aside_copy(struct aside_text *text, const char *from)
{
	size_t length = (size_t)(text->at - from);

	memcpy(text->to, from, length);
	text->to += length;
}

/* Takes one character, and the blanks around it. Return: whether it is there. */
static bool aside_take(struct aside_text *text, char c)
{
	aside_skip_blanks(text);
	if (text->at == text->end || *text->at != c)
		return false;
	*text->to++ = *text->at++;
	aside_skip_blanks(text);
	return true;
}

static const struct json_aside *aside_find(const struct json_aside *asides, const char *name, size_t length)
{
	for (; asides->name; asides++)
		if (strncmp(asides->name, name, length) == 0 && asides->name[length] == '\0')
			return asides;
	return NULL;
}

/* A short value is cheaper to parse. */
static void aside_leave_out(struct aside_text *text, const char *from)
{
	char place[PLACE_MAX];
	int length = snprintf(place, sizeof(place), "%s%zu+%zu\"", text->mark, (size_t)(from - text->data),
			      (size_t)(text->at - from));

	if (length >= text->at - from) {
		aside_copy(text, from);
		return;
	}
	memcpy(text->to, place, (size_t)length);
	text->to += length;
}

/* Return: whether it is like an object. */
static bool aside_take_object(struct aside_text *text, const struct json_aside *asides)
{
	if (!aside_take(text, '{'))
		return false;
	if (aside_take(text, '}'))
		return true;
	do {
		const struct json_aside *aside;
		const char *from = text->at;

		if (text->at == text->end || *text->at != '"' || !aside_skip_string(text))
			return false;
		aside_copy(text, from);
		aside = aside_find(asides, from + 1, (size_t)(text->at - from) - 2);
		if (!aside_take(text, ':') || text->at == text->end)
			return false;
		from = text->at;
		if (aside && aside->members && *from == '{') {
			if (!aside_take_object(text, aside->members))
				return false;
			continue;
		}
		if (!aside_skip_value(text))
			return false;
		if (aside && !aside->members)
			aside_leave_out(text, from);
		else
			aside_copy(text, from);
	} while (aside_take(text, ','));
	return aside_take(text, '}');
}

int json_aside_take(const char *data, size_t size, const struct json_aside *asides, char **ret, size_t *ret_size)
{
	_cleanup_free_ char *shorter = malloc(size + 1);
	struct aside_text text = {.data = data, .at = data, .end = data + size, .to = shorter};
	int r;

	if (!shorter)
		return -ENOMEM;
	r = json_mark_write('2', text.mark);
	if (r < 0)
		return r;
	/* Behind one, what is given back would be missing. */
	if (memchr(data, '\0', size))
		return -EINVAL;
	if (!aside_take_object(&text, asides) || text.at != text.end)
		return -EINVAL;
	*ret_size = (size_t)(text.to - shorter);
	*ret = steal_ptr(shorter);
	return 0;
}

/* ---- back again ---- */

/* Return: what is behind the place; NULL if @text has no more. */
static const char *aside_next_place(const char *text, const char *mark, const char **ret_found, size_t *ret_start,
				    size_t *ret_length)
{
	const char *found = strstr(text, mark);
	char *end;

	if (!found)
		return NULL;
	*ret_found = found;
	*ret_start = strtoul(found + JSON_MARK_SIZE, &end, 10);
	*ret_length = strtoul(end + 1, &end, 10);
	return end + 1;
}

int json_aside_give_back(const char *text, const char *data, char **ret)
{
	const char *at = text, *found, *behind;
	size_t all = strlen(text) + 1, start, length;
	char mark[JSON_MARK_SIZE + 1], *to;
	int r;

	r = json_mark_write('2', mark);
	if (r < 0)
		return r;
	for (; (behind = aside_next_place(at, mark, &found, &start, &length)); at = behind)
		all += length;
	*ret = to = malloc(all);
	if (!to)
		return -ENOMEM;
	for (at = text; (behind = aside_next_place(at, mark, &found, &start, &length)); at = behind) {
		to = mempcpy(to, at, (size_t)(found - at));
		to = mempcpy(to, data + start, length);
	}
	memcpy(to, at, strlen(at) + 1);
	return 0;
}

/* What is wrong is said of the whole text. */
int json_parse_but(const char *data, size_t size, const struct json_aside *asides, json_t **ret,
		   char reason[JSON_ERROR_TEXT_LENGTH])
{
	_cleanup_free_ char *shorter = NULL;
	size_t length;

	if (json_aside_take(data, size, asides, &shorter, &length) == 0 &&
	    json_parse_to_print(shorter, length, ret, NULL) == 0)
		return 0;
	return json_parse_to_print(data, size, ret, reason);
}

int json_print_whole(const json_t *json, size_t flags, const char *data, char **ret)
{
	_cleanup_free_ char *text = NULL;
	int r = json_print(json, flags, &text);

	return r == 0 ? json_aside_give_back(text, data, ret) : r;
}
