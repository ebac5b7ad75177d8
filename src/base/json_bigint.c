/* SPDX-License-Identifier: Apache-2.0 */

#include "base/json_bigint.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#include "base/str.h"

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

int json_bigint_mark(const char *data, size_t size, bool keep, char **ret, size_t *ret_size)
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

void json_bigint_unmark(char *text)
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
