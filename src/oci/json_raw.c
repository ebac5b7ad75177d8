/* SPDX-License-Identifier: Apache-2.0 */

#include "oci/json_raw.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/str.h"

/* "START+LENGTH" of the text, and the quote at the end. */
enum { PLACE_MAX = JSON_MARK_SIZE + 48 };

struct raw_text {
	const char *data, *at, *end;
	char *to; /* never longer than what has been read */
	char mark[JSON_MARK_SIZE + 1];
};

static void raw_skip_blanks(struct raw_text *text)
{
	while (text->at < text->end &&
	       (*text->at == ' ' || *text->at == '\n' || *text->at == '\t' || *text->at == '\r'))
		text->at++;
}

/* A string, or whatever ends with its closing quote. Return: whether it ends. */
static bool raw_skip_string(struct raw_text *text)
{
	const char *at = text->at + 1, *end = text->end;

	while (at < end && *at != '"')
		at += *at == '\\' && at + 1 < end ? 2 : 1;
	text->at = at < end ? at + 1 : end;
	return at < end;
}

/* Return: how the depth of nesting changes by the next character, string or word of a value. */
static int raw_skip_piece(struct raw_text *text)
{
	switch (*text->at) {
	case '"':
		return raw_skip_string(text) ? 0 : -2;
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
static bool raw_skip_value(struct raw_text *text)
{
	int depth = 0;

	if (text->at < text->end && *text->at != '"' && *text->at != '{' && *text->at != '[') {
		while (text->at < text->end && !memchr(",]} \n\t\r", *text->at, 7))
			text->at++;
		return text->at < text->end;
	}
	while (text->at < text->end) {
		int more = raw_skip_piece(text);

		if (more < -1)
			return false;
		depth += more;
		if (depth == 0)
			return true;
	}
	return false;
}

static void raw_copy(struct raw_text *text, const char *from)
{
	size_t length = (size_t)(text->at - from);

	memcpy(text->to, from, length);
	text->to += length;
}

/* Takes one character, and the blanks around it. Return: whether it is there. */
static bool raw_take(struct raw_text *text, char c)
{
	raw_skip_blanks(text);
	if (text->at == text->end || *text->at != c)
		return false;
	*text->to++ = *text->at++;
	raw_skip_blanks(text);
	return true;
}

static const struct json_raw *raw_find(const struct json_raw *raws, const char *name, size_t length)
{
	for (; raws->name; raws++)
		if (strncmp(raws->name, name, length) == 0 && raws->name[length] == '\0')
			return raws;
	return NULL;
}

/* A short value is cheaper to parse. */
static void raw_cut(struct raw_text *text, const char *from)
{
	char place[PLACE_MAX];
	int length = snprintf(place, sizeof(place), "%s%zu+%zu\"", text->mark, (size_t)(from - text->data),
			      (size_t)(text->at - from));

	if (length >= text->at - from) {
		raw_copy(text, from);
		return;
	}
	memcpy(text->to, place, (size_t)length);
	text->to += length;
}

/* Return: whether it is like an object. */
static bool raw_take_object(struct raw_text *text, const struct json_raw *raws)
{
	if (!raw_take(text, '{'))
		return false;
	if (raw_take(text, '}'))
		return true;
	do {
		const struct json_raw *raw;
		const char *from = text->at;

		if (text->at == text->end || *text->at != '"' || !raw_skip_string(text))
			return false;
		raw_copy(text, from);
		raw = raw_find(raws, from + 1, (size_t)(text->at - from) - 2);
		if (!raw_take(text, ':') || text->at == text->end)
			return false;
		from = text->at;
		if (raw && raw->members && *from == '{') {
			if (!raw_take_object(text, raw->members))
				return false;
			continue;
		}
		if (!raw_skip_value(text))
			return false;
		if (raw && !raw->members)
			raw_cut(text, from);
		else
			raw_copy(text, from);
	} while (raw_take(text, ','));
	return raw_take(text, '}');
}

/*
 * json_raw_take() - a shorter text
 * @raws: members of the object that @data is
 * @ret:  owned by the caller; what @raws names is not in it
 *
 * What is left out has quotes and brackets in pairs, and is not checked further.
 *
 * Return: 0; -ENOMEM; -EINVAL if @data cannot be JSON; negative errno without a random number.
 */
static int json_raw_take(const char *data, size_t size, const struct json_raw *raws, char **ret, size_t *ret_size)
{
	_cleanup_free_ char *shorter = malloc(size + 1);
	struct raw_text text = {.data = data, .at = data, .end = data + size, .to = shorter};
	int r;

	if (!shorter)
		return -ENOMEM;
	r = json_bigint_mark_write('2', text.mark);
	if (r < 0)
		return r;
	/* It would cut off the text that is put back. */
	if (memchr(data, '\0', size))
		return -EINVAL;
	if (!raw_take_object(&text, raws) || text.at != text.end)
		return -EINVAL;
	*ret_size = (size_t)(text.to - shorter);
	*ret = steal_ptr(shorter);
	return 0;
}

/* ---- back again ---- */

/* Return: what is behind the place; NULL if @text has no more. */
static const char *raw_next_place(const char *text, const char *mark, const char **ret_found, size_t *ret_start,
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

/*
 * json_raw_restore() - the values in their places again
 * @text: made from what was parsed
 * @data: as json_raw_take() got it
 * @ret:  owned by the caller
 *
 * Return: 0 or -ENOMEM.
 */
static int json_raw_restore(const char *text, const char *data, char **ret)
{
	const char *at = text, *found, *behind;
	size_t all = strlen(text) + 1, start, length;
	char mark[JSON_MARK_SIZE + 1], *to;
	int r;

	r = json_bigint_mark_write('2', mark);
	if (r < 0)
		return r;
	for (; (behind = raw_next_place(at, mark, &found, &start, &length)); at = behind)
		all += length;
	*ret = to = malloc(all);
	if (!to)
		return -ENOMEM;
	for (at = text; (behind = raw_next_place(at, mark, &found, &start, &length)); at = behind) {
		to = mempcpy(to, at, (size_t)(found - at));
		to = mempcpy(to, data + start, length);
	}
	memcpy(to, at, strlen(at) + 1);
	return 0;
}

/* What is wrong is said of the whole text. */
int json_parse_skipping(const char *data, size_t size, const struct json_raw *raws, json_t **ret,
			char reason[JSON_ERROR_TEXT_LENGTH])
{
	_cleanup_free_ char *shorter = NULL;
	size_t length;

	if (json_raw_take(data, size, raws, &shorter, &length) == 0 &&
	    json_parse_to_print(shorter, length, ret, NULL) == 0)
		return 0;
	return json_parse_to_print(data, size, ret, reason);
}

int json_print_restoring(const json_t *json, size_t flags, const char *data, char **ret)
{
	_cleanup_free_ char *text = NULL;
	int r = json_print(json, flags, &text);

	return r == 0 ? json_raw_restore(text, data, ret) : r;
}
