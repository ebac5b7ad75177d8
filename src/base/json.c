/* SPDX-License-Identifier: Apache-2.0 */

#include "base/json.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#include "base/str.h"

/* ---- large numbers ---- */

/*
 * Integers that do not fit into json_int_t. jansson refuses them; container configurations have them, as every
 * "unlimited" of a uint64: `docker run --ulimit core=-1` is 18446744073709551615. Where the text is to be written
 * again, they travel through jansson as strings. Each string has a random number of this process in it, so no other
 * process can write one. Elsewhere they are real numbers, so that no code takes them for texts.
 */

/* The kernel's random bytes (getauxval(3)) guard the stack, too; the difference does not reveal its two parts. */
int json_bigint_mark_write(char kind, char ret[JSON_MARK_SIZE + 1])
{
	const void *random = (const void *)(uintptr_t)getauxval(AT_RANDOM);
	uint64_t parts[2];

	if (!random)
		return -EAGAIN;
	memcpy(parts, random, sizeof(parts));
	(void)snprintf(ret, JSON_MARK_SIZE + 1, "\"\\u000%c%016llx", kind, (unsigned long long)(parts[0] - parts[1]));
	return 0;
}

static char mark[JSON_MARK_SIZE + 1];

static size_t json_bigint_string_length(const char *text, size_t size)
{
	size_t i = 1;

	while (i < size && text[i] != '"')
		i += text[i] == '\\' ? 2 : 1;
	return i < size ? i + 1 : size;
}

static size_t json_bigint_number_length(const char *text, size_t size)
{
	size_t i = 0;

	while (i < size && memchr("+-.0123456789Ee", text[i], 15))
		i++;
	return i;
}

/* Whether a number is an integer as JSON writes them and too large; anything else is left to the parser. */
static bool json_bigint_needs_mark(const char *text, size_t length)
{
	size_t sign = text[0] == '-';
	char *copy;
	bool large;

	for (size_t i = sign; i < length; i++)
		if (text[i] < '0' || text[i] > '9')
			return false;
	if (length - sign < sizeof("9223372036854775807") - 1 || text[sign] == '0')
		return false;
	copy = strndup(text, length);
	if (!copy)
		return false;
	errno = 0;
	(void)strtoll(copy, NULL, 10);
	large = errno == ERANGE;
	free(copy);
	return large;
}

/* A number in the place of a name is invalid JSON, and must stay so. */
static bool json_bigint_is_name(const char *behind, size_t size)
{
	size_t blanks = 0;

	while (blanks < size && memchr(" \t\r\n", behind[blanks], 4))
		blanks++;
	return blanks < size && behind[blanks] == ':';
}

static void json_bigint_write(FILE *file, const char *data, size_t size, bool keep)
{
	for (size_t i = 0, length; i < size; i += length) {
		bool number = data[i] == '-' || (data[i] >= '0' && data[i] <= '9');

		length = number           ? json_bigint_number_length(data + i, size - i)
			 : data[i] == '"' ? json_bigint_string_length(data + i, size - i)
					  : 1;
		if (number && json_bigint_needs_mark(data + i, length) &&
		    !json_bigint_is_name(data + i + length, size - i - length))
			(void)fprintf(file, "%s%.*s%s", keep ? mark : "", (int)length, data + i, keep ? "\"" : ".0");
		else
			(void)fwrite(data + i, 1, length, file);
	}
}

/*
 * A copy of a JSON text in which large integers are such strings or, without @keep, real numbers. Errors of the text
 * are errors of the copy. Return: 0; -ENOMEM; -EAGAIN without a random number.
 */
static int json_bigint_mark(const char *data, size_t size, bool keep, char **ret, size_t *ret_size)
{
	struct memstream stream;
	int r;

	r = json_bigint_mark_write('1', mark);
	if (r < 0)
		return r;
	if (!memstream_open(&stream))
		return -ENOMEM;
	json_bigint_write(stream.file, data, size, keep);
	return memstream_close(&stream, ret, ret_size);
}

/* Puts the integers back into a text that was made from what was parsed. */
static void json_bigint_unmark(char *text)
{
	char *to = text, *from = text, *found;

	if (!mark[0])
		return;
	while ((found = strstr(from, mark))) {
		size_t before = (size_t)(found - from), digits = strcspn(found + JSON_MARK_SIZE, "\"");

		memmove(to, from, before);
		memmove(to + before, found + JSON_MARK_SIZE, digits);
		to += before + digits;
		from = found + JSON_MARK_SIZE + digits + (found[JSON_MARK_SIZE + digits] == '"');
	}
	memmove(to, from, strlen(from) + 1);
}

/* ---- all of a text ---- */

_Static_assert(JSON_MAX_VALUES == 131072, "the message says how many");

/*
 * jansson recurses into what it parses. Its own limit (2048) is deeper than any file of ours needs, so the depth is
 * measured on the text, before anything is built; and so are the values: one more than there are commas and opening
 * brackets, at most. Return: what is too much; NULL.
 */
static const char *json_find_excess(const char *data, size_t size)
{
	unsigned depth = 0, values = 1;
	bool in_string = false;

	for (size_t i = 0; i < size; i++) {
		const bool opens = !in_string && (data[i] == '{' || data[i] == '[');

		if (in_string && data[i] == '\\')
			i++;
		else if (data[i] == '"')
			in_string = !in_string;
		else if (in_string)
			continue;
		else if (opens && ++depth > JSON_MAX_DEPTH)
			return "nested too deeply";
		else if ((opens || data[i] == ',') && ++values > JSON_MAX_VALUES)
			return "more than 131072 values";
		else if ((data[i] == '}' || data[i] == ']') && depth > 0)
			depth--;
	}
	return NULL;
}

/* The parser quotes the file, which may have control characters. */
static void json_set_reason(char reason[JSON_ERROR_TEXT_LENGTH], const char *text, int line)
{
	char where[32] = "";

	if (!reason)
		return;
	if (line > 1)
		(void)snprintf(where, sizeof(where), JSON_LINE "%d", line);
	(void)snprintf(reason, JSON_ERROR_TEXT_LENGTH, "%.*s%s", JSON_ERROR_TEXT_LENGTH - (int)sizeof(where), text,
		       where);
	printable_only(reason);
}

/*
 * jansson would take its seed from /dev/urandom, with three system calls and only where that exists. The kernel's
 * random bytes (getauxval(3)) guard the stack, too; the sum does not reveal its two parts.
 */
static void json_seed_hashes(void)
{
	const void *random = (const void *)(uintptr_t)getauxval(AT_RANDOM);
	static bool seeded;
	uint64_t parts[2];

	if (!seeded && random) {
		memcpy(parts, random, sizeof(parts));
		json_object_seed(parts[0] + parts[1]);
	}
	seeded = true;
}

static json_t *json_load_bigint(const char *data, size_t size, bool keep, json_error_t *error)
{
	_cleanup_free_ char *marked = NULL;
	size_t marked_size;

	if (json_bigint_mark(data, size, keep, &marked, &marked_size) < 0)
		return NULL;
	return json_loadb(marked, marked_size, JSON_REJECT_DUPLICATES, error);
}

/* @keep: as of json_bigint_mark() */
static int json_load(const char *data, size_t size, bool keep, json_t **ret, char *reason)
{
	const char *excess = json_find_excess(data, size);
	json_error_t error;
	json_t *json;

	if (excess) {
		json_set_reason(reason, excess, 0);
		return -EINVAL;
	}
	json_seed_hashes();
	json = json_loadb(data, size, JSON_REJECT_DUPLICATES, &error);
	if (!json && json_error_code(&error) == json_error_numeric_overflow)
		json = json_load_bigint(data, size, keep, &error);
	if (!json) {
		json_set_reason(reason, error.text, error.line);
		return json_error_code(&error) == json_error_out_of_memory ? -ENOMEM : -EINVAL;
	}
	*ret = json;
	return 0;
}

int json_parse(const char *data, size_t size, json_t **ret, char reason[JSON_ERROR_TEXT_LENGTH])
{
	return json_load(data, size, false, ret, reason);
}

int json_parse_to_print(const char *data, size_t size, json_t **ret, char reason[JSON_ERROR_TEXT_LENGTH])
{
	return json_load(data, size, true, ret, reason);
}

int json_print(const json_t *json, size_t flags, char **ret)
{
	char *text = json_dumps(json, flags);

	if (!text)
		return -ENOMEM;
	json_bigint_unmark(text);
	*ret = text;
	return 0;
}

json_t *json_at(const json_t *json, const char *path)
{
	size_t length = strcspn(path, "/");
	_cleanup_free_ char *name = strndup(path, length);
	json_t *member = name ? json_object_get(json, name) : NULL;

	return path[length] ? json_at(member, path + length + 1) : member;
}

json_t *json_share(uint64_t amount)
{
	char text[BYTES_TEXT_SIZE];

	if (STR_SHARE_PERCENT(amount) == 0)
		return amount ? json_integer((json_int_t)amount) : json_null();
	str_format_share(amount, text);
	return json_string(text);
}
