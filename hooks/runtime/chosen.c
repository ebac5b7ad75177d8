/* SPDX-License-Identifier: Apache-2.0 */

#include "chosen.h"

#include "plain.h"

enum {
	DIGITS_MAX = 17, /* that fit a number of 64 bits whatever they are */
	KEYS_MAX = 32,
};

struct chosen_text {
	const char *at, *end;
};

static void chosen_skip_space(struct chosen_text *text)
{
	while (text->at < text->end &&
	       (*text->at == ' ' || *text->at == '\t' || *text->at == '\n' || *text->at == '\r'))
		text->at++;
}

/* Takes one character, and the space around it. Return: whether it is there. */
static bool chosen_take(struct chosen_text *text, char c)
{
	chosen_skip_space(text);
	if (text->at == text->end || *text->at != c)
		return false;
	text->at++;
	chosen_skip_space(text);
	return true;
}

static bool chosen_take_string(struct chosen_text *text, const char **ret, size_t *ret_length)
{
	chosen_skip_space(text);
	if (text->at == text->end || *text->at != '"')
		return false;
	*ret = ++text->at;
	while (text->at < text->end && *text->at >= ' ' && *text->at < 0x7f && *text->at != '"' && *text->at != '\\')
		text->at++;
	*ret_length = (size_t)(text->at - *ret);
	return text->at < text->end && *text->at == '"' && chosen_take(text, '"');
}

static bool chosen_take_word(struct chosen_text *text)
{
	const char *start = text->at;
	bool number = true;
	size_t length;

	while (text->at < text->end &&
	       ((*text->at >= 'a' && *text->at <= 'z') || (*text->at >= '0' && *text->at <= '9')))
		number &= *text->at++ <= '9';
	length = (size_t)(text->at - start);
	if (number)
		return length > 0 && length <= DIGITS_MAX && (start[0] != '0' || length == 1);
	return plain_is(start, length, "true") || plain_is(start, length, "false") || plain_is(start, length, "null");
}

/* What the settings take: an absolute path, or a name. */
static bool chosen_add(struct chosen *chosen, const char *item, size_t length)
{
	if (length == 0 || chosen->count == CHOSEN_MAX)
		return false;
	for (size_t i = 0; item[0] != '/' && i < length; i++)
		if (item[i] == '/')
			return false;
	chosen->items[chosen->count].text = item;
	chosen->items[chosen->count++].length = length;
	return true;
}

/* A list of texts, which are added to @chosen unless that is NULL. */
static bool chosen_take_list(struct chosen_text *text, struct chosen *chosen)
{
	const char *item;
	size_t length;

	if (!chosen_take(text, '['))
		return false;
	if (!chosen && chosen_take(text, ']'))
		return true;
	do {
		if (!chosen_take_string(text, &item, &length) || (chosen && !chosen_add(chosen, item, length)))
			return false;
	} while (chosen_take(text, ','));
	return chosen_take(text, ']');
}

static bool chosen_take_value(struct chosen_text *text)
{
	const char *ignored;
	size_t length;

	if (text->at == text->end)
		return false;
	if (*text->at == '"')
		return chosen_take_string(text, &ignored, &length);
	return *text->at == '[' ? chosen_take_list(text, NULL) : chosen_take_word(text);
}

struct chosen_keys {
	struct chosen_item items[KEYS_MAX];
	size_t count;
};

/* Takes a key and its colon. Return: whether it is the first of its name. */
static bool chosen_take_key(struct chosen_text *text, struct chosen_keys *keys)
{
	struct chosen_item *key = &keys->items[keys->count];

	if (keys->count == KEYS_MAX || !chosen_take_string(text, &key->text, &key->length) || !chosen_take(text, ':'))
		return false;
	for (size_t i = 0; i < keys->count; i++) {
		const struct chosen_item *other = &keys->items[i];
		size_t same = 0;

		while (same < key->length && same < other->length && key->text[same] == other->text[same])
			same++;
		if (same == key->length && same == other->length)
			return false;
	}
	keys->count++;
	return true;
}

static bool chosen_take_entry(struct chosen_text *text, struct chosen_keys *keys, struct chosen *chosen)
{
	const struct chosen_item *key = &keys->items[keys->count];

	if (!chosen_take_key(text, keys))
		return false;
	return plain_is(key->text, key->length, "runtimes") ? chosen_take_list(text, chosen) : chosen_take_value(text);
}

bool chosen_read(const char *data, size_t size, struct chosen *ret)
{
	struct chosen_text text = {data, data + size};
	struct chosen_keys keys;

	ret->count = keys.count = 0;
	if (!chosen_take(&text, '{'))
		return false;
	if (!chosen_take(&text, '}')) {
		do {
			if (!chosen_take_entry(&text, &keys, ret))
				return false;
		} while (chosen_take(&text, ','));
		if (!chosen_take(&text, '}'))
			return false;
	}
	return text.at == text.end;
}
