/* SPDX-License-Identifier: Apache-2.0 */

#include "base/str.h"

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/param.h>
#include <sys/types.h>

#include "base/cleanup.h"

const char *str_after_prefix(const char *text, const char *prefix)
{
	while (*prefix)
		if (*text++ != *prefix++)
			return NULL;
	return text;
}

void str_make_printable(char *text)
{
	for (; *text; text++)
		if (*text < ' ' || *text > '~')
			*text = '?';
}

bool str_is_below(const char *path, const char *directory)
{
	size_t same = 0, rest;

	while (directory[same] && path[same] == directory[same])
		same++;
	for (rest = same; directory[rest] == '/';)
		rest++;
	return !directory[rest] && (path[same] == '/' || path[same] == '\0' || (same > 0 && path[same - 1] == '/'));
}

/*
 * Texts one behind the other are most of what is printed, and printf takes 2,000 instructions for each. Return: the
 * length; -1 if there is more to the format, or no room.
 */
static int str_join(char *to, size_t size, const char *format, va_list arguments)
{
	size_t length = 0;

	for (; *format; format++) {
		const char *text = format;
		size_t count = 1;

		if (*format == '%') {
			if (*++format != 's' || !(text = va_arg(arguments, const char *)))
				return -1;
			count = strlen(text);
		}
		if (count >= size - length)
			return -1;
		if (count == 1)
			to[length] = *text;
		else
			memcpy(to + length, text, count);
		length += count;
	}
	to[length] = '\0';
	return (int)length;
}

static int str_print(char **ret, const char *format, va_list arguments) __attribute__((format(printf, 2, 0)));

/* musl's vasprintf() prints everything twice. */
static int str_print(char **ret, const char *format, va_list arguments)
{
	char text[512];
	va_list again;
	int length;

	va_copy(again, arguments);
	length = str_join(text, sizeof(text), format, again);
	va_end(again);
	if (length < 0) {
		va_copy(again, arguments);
		length = vsnprintf(text, sizeof(text), format, again);
		va_end(again);
	}
	if (length < 0 || (size_t)length >= sizeof(text))
		return vasprintf(ret, format, arguments) < 0 ? -ENOMEM : 0;
	*ret = malloc((size_t)length + 1);
	if (!*ret)
		return -ENOMEM;
	memcpy(*ret, text, (size_t)length + 1);
	return 0;
}

int str_format(char **ret, const char *format, ...)
{
	va_list arguments;
	int r;

	va_start(arguments, format);
	r = str_print(ret, format, arguments);
	va_end(arguments);
	return r;
}

int str_append(char **text, const char *format, ...)
{
	_cleanup_free_ char *end = NULL;
	va_list arguments;
	char *longer;
	int r;

	va_start(arguments, format);
	r = str_print(&end, format, arguments);
	va_end(arguments);
	if (r == 0)
		r = str_format(&longer, "%s%s", *text ? *text : "", end);
	if (r < 0)
		return r;
	free(*text);
	*text = longer;
	return 0;
}

uint64_t str_hash_of(const void *bytes, size_t size)
{
	const unsigned char *byte = bytes;
	uint64_t value = 0xcbf29ce484222325;

	for (size_t i = 0; i < size; i++)
		value = (value ^ byte[i]) * 0x100000001b3;
	return value;
}

uint64_t str_hash(const char *text)
{
	return str_hash_of(text, strlen(text));
}

void *array_grow(void *array, size_t count, size_t element_size)
{
	size_t capacity;

	/* Full exactly when the count is zero or a power of two. */
	if (count & (count - 1))
		return array;
	if (count == 0)
		return realloc(array, element_size);
	if (__builtin_mul_overflow(count, 2 * element_size, &capacity))
		return NULL;
	return realloc(array, capacity);
}

int str_replace(char **text, const char *copied)
{
	char *copy = strdup(copied);

	if (!copy)
		return -ENOMEM;
	free(*text);
	*text = copy;
	return 0;
}

void strv_clear(struct strv *list)
{
	for (size_t i = 0; i < list->count; i++)
		free(list->items[i]);
	free(list->items);
	*list = (struct strv){0};
}

int strv_take(struct strv *list, char *text)
{
	_cleanup_free_ char *owned = text;
	char **items;

	if (!owned)
		return -ENOMEM;
	items = array_grow(list->items, list->count, sizeof(*items));
	if (!items)
		return -ENOMEM;
	list->items = items;
	list->items[list->count++] = steal_ptr(owned);
	return 0;
}

int strv_add(struct strv *list, const char *text)
{
	return strv_take(list, strdup(text));
}

int strv_format(struct strv *list, const char *format, ...)
{
	va_list arguments;
	char *text = NULL;

	va_start(arguments, format);
	(void)str_print(&text, format, arguments);
	va_end(arguments);
	return strv_take(list, text);
}

bool strv_contains(const struct strv *list, const char *text)
{
	for (size_t i = 0; i < list->count; i++)
		if (streq(list->items[i], text))
			return true;
	return false;
}

static int strv_compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* array_grow() left room for the NULL or makes some. */
int strv_terminate(struct strv *list)
{
	char **items = array_grow(list->items, list->count, sizeof(*items));

	if (!items)
		return -ENOMEM;
	list->items = items;
	items[list->count] = NULL;
	return 0;
}

const char *strv_variable(const struct strv *list, const char *name)
{
	size_t length = strlen(name);

	for (size_t i = list->count; i-- > 0;)
		if (strncmp(list->items[i], name, length) == 0 && list->items[i][length] == '=')
			return list->items[i] + length + 1;
	return NULL;
}

void strv_sort(struct strv *list)
{
	if (list->count > 1)
		qsort(list->items, list->count, sizeof(*list->items), strv_compare);
}

int strv_join(const struct strv *list, const char *separator, char **ret)
{
	struct memstream stream;

	if (!memstream_open(&stream))
		return -ENOMEM;
	for (size_t i = 0; i < list->count; i++)
		(void)fprintf(stream.file, "%s%s", i > 0 ? separator : "", list->items[i]);
	return memstream_close(&stream, ret, NULL);
}

static bool str_is_blank(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

int strv_split(const char *text, const char *separators, struct strv *ret)
{
	while (*text) {
		size_t length = strcspn(text, separators), next = length;
		int r;

		while (length > 0 && str_is_blank(*text)) {
			text++;
			length--;
			next--;
		}
		while (length > 0 && str_is_blank(text[length - 1]))
			length--;
		if (length > 0) {
			r = ret->count < STRV_SPLIT_MAX ? strv_take(ret, strndup(text, length)) : -E2BIG;
			if (r < 0)
				return r;
		}
		text += next;
		if (*text)
			text++;
	}
	return 0;
}

static const char units[] = "KMGT";

static bool str_size_is_unit(const char *text, size_t *ret_shift)
{
	*ret_shift = 0;
	if (!*text)
		return true;
	for (size_t i = 0; units[i]; i++)
		if ((*text | 0x20) == (units[i] | 0x20))
			*ret_shift = (i + 1) * 10;
	return *ret_shift > 0 && (!text[1] || strcasecmp(text + 1, "i") == 0 || strcasecmp(text + 1, "iB") == 0 ||
				  strcasecmp(text + 1, "B") == 0);
}

bool str_parse_size(const char *text, uint64_t *ret)
{
	uint64_t number = 0;
	size_t shift;

	if (*text < '0' || *text > '9')
		return false;
	for (; *text >= '0' && *text <= '9'; text++)
		if (__builtin_mul_overflow(number, 10, &number) ||
		    __builtin_add_overflow(number, (uint64_t)(*text - '0'), &number))
			return false;
	if (!str_size_is_unit(text, &shift) || number == 0 || number > (uint64_t)INT64_MAX >> shift)
		return false;
	*ret = number << shift;
	return true;
}

void str_format_size(uint64_t bytes, char ret[static BYTES_TEXT_SIZE])
{
	size_t unit = 0;

	if (bytes < 1024) {
		(void)snprintf(ret, BYTES_TEXT_SIZE, "%u bytes", (unsigned)bytes);
		return;
	}
	while (units[unit + 1] && bytes >> ((unit + 2) * 10) > 0)
		unit++;
	(void)snprintf(ret, BYTES_TEXT_SIZE, "%.1f %ciB", (double)bytes / (double)(1ULL << (unit + 1) * 10),
		       units[unit]);
}

bool str_parse_share(const char *text, uint64_t *ret)
{
	char *end;
	unsigned long percent;

	if (streq(text, "all")) {
		*ret = 0;
		return true;
	}
	if (text[0] < '0' || text[0] > '9')
		return false;
	percent = strtoul(text, &end, 10);
	if (streq(end, "%") && percent >= 1 && percent <= 100) {
		*ret = STR_SHARE(percent);
		return true;
	}
	return str_parse_size(text, ret) && STR_SHARE_PERCENT(*ret) == 0;
}

void str_format_share(uint64_t amount, char ret[static BYTES_TEXT_SIZE])
{
	const uint64_t bytes = STR_SHARE_BYTES(amount);
	const unsigned percent = STR_SHARE_PERCENT(amount);
	size_t used = 0;

	ret[0] = '\0';
	if (bytes > 0) {
		str_format_size(bytes, ret);
		used = strlen(ret);
	}
	if (percent > 0)
		(void)snprintf(ret + used, BYTES_TEXT_SIZE - used, "%s%u%%", bytes > 0 ? ", at most " : "", percent);
}

uint64_t str_share_of(uint64_t amount, uint64_t whole)
{
	const uint64_t bytes = STR_SHARE_BYTES(amount), percent = STR_SHARE_PERCENT(amount),
		       share = whole / 100 * percent + whole % 100 * percent / 100;

	if (percent == 0)
		return bytes > 0 ? bytes : UINT64_MAX;
	return bytes > 0 && bytes < share ? bytes : share;
}

/* ---- what a terminal shows as it is ---- */

/* Bytes of a character, and the first that needs so many (RFC 3629). */
static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};

/* Surrogates, what is beyond the last character, and Unicode's Cc, Zl, Zp and what sets a direction. */
static const struct {
	uint32_t first, last;
} hidden[] = {
	{0, 0x1f},        {0x7f, 0x9f},     {0x61c, 0x61c},   {0x200e, 0x200f},       {0x2028, 0x202e},
	{0x2066, 0x2069}, {0xd800, 0xdfff}, {0xfeff, 0xfeff}, {0x110000, UINT32_MAX},
};

static size_t printable_count(unsigned char first)
{
	if (first < 0x80)
		return 1;
	return first >= 0xf8 ? 0 : first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc0 ? 2 : 0;
}

size_t printable_read(const char *text, uint32_t *ret)
{
	const unsigned char *bytes = (const unsigned char *)text;
	size_t count = printable_count(bytes[0]);
	uint32_t c = count > 1 ? bytes[0] & (0x7fU >> count) : bytes[0];

	for (size_t i = 1; i < count; i++) {
		if ((bytes[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (bytes[i] & 0x3f);
	}
	*ret = c;
	return count > 0 && c >= least[count] ? count : 0;
}

size_t printable_length(const char *text)
{
	uint32_t c;
	size_t count;

	/* Nearly all is ASCII, for which no table is needed. */
	if (*text >= ' ' && *text <= '~')
		return 1;
	count = printable_read(text, &c);
	for (size_t i = 0; i < ARRAY_SIZE(hidden) && count > 0; i++)
		if (c >= hidden[i].first && c <= hidden[i].last)
			return 0;
	return count;
}

bool printable_is_all(const char *text)
{
	size_t length = 1;

	for (; *text && length > 0; text += length)
		length = printable_length(text);
	return length > 0;
}

void printable_only(char *text)
{
	while (*text) {
		size_t length = printable_length(text);

		if (length == 0)
			*text = '?';
		text += length + (length == 0);
	}
}

/* ---- text printed into memory ---- */

/* ---- what was meant ---- */

enum {
	MEANT_LENGTH_MAX = 63,
	MEANT_NEAR = 2,
};

/* How many letters must be inserted, removed, replaced, or swapped with their neighbour. */
static size_t str_distance(const char *a, const char *b)
{
	unsigned char table[MEANT_LENGTH_MAX + 1][MEANT_LENGTH_MAX + 1];
	size_t a_length = strlen(a), b_length = strlen(b);

	for (size_t i = 0; i <= a_length; i++)
		table[i][0] = (unsigned char)i;
	for (size_t j = 0; j <= b_length; j++)
		table[0][j] = (unsigned char)j;
	for (size_t i = 1; i <= a_length; i++) {
		for (size_t j = 1; j <= b_length; j++) {
			int fewest = MIN(MIN(table[i - 1][j], table[i][j - 1]) + 1,
					 table[i - 1][j - 1] + (a[i - 1] != b[j - 1]));

			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				fewest = MIN(fewest, table[i - 2][j - 2] + 1);
			table[i][j] = (unsigned char)fewest;
		}
	}
	return table[a_length][b_length];
}

/* How far a name is from a known one; above MEANT_NEAR it is not suggested. A beginning is an exact match. */
static size_t str_distance_of_name(const char *known, const char *name)
{
	size_t length = strlen(name), letters;

	if (!length || !*known || length > MEANT_LENGTH_MAX || strlen(known) > MEANT_LENGTH_MAX)
		return MEANT_NEAR + 1;
	if (strncmp(known, name, length) == 0)
		return 0;
	letters = str_distance(name, known);
	/* A word is not near if most of its letters must change. */
	return 2 * letters <= length ? letters : MEANT_NEAR + 1;
}

const char *str_nearest(const char *const *names, size_t count, const char *name)
{
	const char *nearest = NULL;
	size_t fewest = MEANT_NEAR + 1;

	for (size_t i = 0; i < count; i++) {
		size_t letters = str_distance_of_name(names[i], name);

		if (letters >= fewest)
			continue;
		fewest = letters;
		nearest = names[i];
	}
	return nearest;
}

const char *str_suggest(const char *const *names, size_t count, const char *name, char ret[static SUGGESTION_SIZE])
{
	const char *nearest = str_nearest(names, count, name);

	ret[0] = '\0';
	if (nearest)
		(void)snprintf(ret, SUGGESTION_SIZE, "; did you mean '%s'?", nearest);
	return ret;
}

/* A null stands behind what is written. */
static bool memstream_grow(struct memstream *stream, size_t size)
{
	enum { ROOM_MIN = 1024 };
	size_t room = stream->room ? stream->room : ROOM_MIN;
	char *text;

	while (room - stream->size <= size)
		if (__builtin_mul_overflow(room, 2, &room))
			return false;
	text = room > stream->room ? realloc(stream->text, room) : stream->text;
	if (!text)
		return false;
	stream->text = text;
	stream->room = room;
	return true;
}

/* As fopencookie(3) wants it: 0 is an error. */
static ssize_t memstream_write(void *cookie, const char *data, size_t size)
{
	struct memstream *stream = cookie;

	if (stream->failed || !memstream_grow(stream, size)) {
		stream->failed = true;
		return 0;
	}
	memcpy(stream->text + stream->size, data, size);
	stream->size += size;
	return (ssize_t)size;
}

FILE *memstream_open(struct memstream *stream)
{
	*stream = (struct memstream){0};
	if (memstream_grow(stream, 0))
		stream->file = fopencookie(stream, "w", (cookie_io_functions_t){.write = memstream_write});
	if (!stream->file)
		free(stream->text);
	return stream->file;
}

int memstream_close(struct memstream *stream, char **ret, size_t *ret_size)
{
	/* Not every libc remembers that a write failed. */
	if (fclose(stream->file) != 0 || stream->failed) {
		free(stream->text);
		return -ENOMEM;
	}
	stream->text[stream->size] = '\0';
	*ret = stream->text;
	if (ret_size)
		*ret_size = stream->size;
	return 0;
}
