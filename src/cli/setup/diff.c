/* SPDX-License-Identifier: Apache-2.0 */

/*
 * By the longest common subsequence of the lines between those at both ends that are equal. If the table for it would
 * be too big, every old line is shown as removed and every new one as added.
 */

#include "cli/setup/setup.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/print.h"

enum {
	CONTEXT = 3,
	TABLE_MAX = 4 * 1024 * 1024,
};

struct diff_line {
	char kind; /* ' ', '-' or '+' */
	const char *text;
	size_t length; /* with its newline, if it has one */
};

struct diff_lines {
	struct diff_line *items;
	size_t count;
};

static void diff_lines_clear(struct diff_lines *lines)
{
	free(lines->items);
}
#define _cleanup_diff_lines_ __attribute__((cleanup(diff_lines_clear)))

static int diff_split(const struct text_buffer *text, struct diff_lines *ret)
{
	const char *at = text->data, *end = text->data ? text->data + text->size : NULL;
	size_t count = 0;

	for (const char *c = at; c < end; c++)
		count += *c == '\n';
	ret->items = calloc(count + 1, sizeof(*ret->items));
	if (!ret->items)
		return -ENOMEM;
	while (at < end) {
		const char *newline = memchr(at, '\n', (size_t)(end - at)), *next = newline ? newline + 1 : end;

		ret->items[ret->count++] = (struct diff_line){' ', at, (size_t)(next - at)};
		at = next;
	}
	return 0;
}

static bool diff_is_same(const struct diff_line *a, const struct diff_line *b)
{
	return a->length == b->length && memcmp(a->text, b->text, a->length) == 0;
}

static void diff_add(struct diff_lines *script, char kind, const struct diff_line *line)
{
	script->items[script->count] = *line;
	script->items[script->count++].kind = kind;
}

/* What is between the ends. The table has the length of the longest common subsequence of a[i...] and b[j...]. */
static int diff_compare(const struct diff_line *a, size_t rows, const struct diff_line *b, size_t columns,
			struct diff_lines *script)
{
	bool fits = (rows + 1) * (columns + 1) <= TABLE_MAX;
	_cleanup_free_ uint32_t *table = calloc(fits ? (rows + 1) * (columns + 1) : 1, sizeof(*table));
	size_t width = columns + 1, i = 0, j = 0;

	if (!table)
		return -ENOMEM;
	for (size_t row = rows; fits && row-- > 0;)
		for (size_t column = columns; column-- > 0;) {
			uint32_t down = table[(row + 1) * width + column], right = table[row * width + column + 1];

			table[row * width + column] = diff_is_same(&a[row], &b[column])
							      ? table[(row + 1) * width + column + 1] + 1
						      : down > right ? down
								     : right;
		}
	while (i < rows || j < columns) {
		if (fits && i < rows && j < columns && diff_is_same(&a[i], &b[j])) {
			diff_add(script, ' ', &a[i++]);
			j++;
		} else if (i < rows &&
			   (j == columns || !fits || table[(i + 1) * width + j] >= table[i * width + j + 1])) {
			diff_add(script, '-', &a[i++]);
		} else {
			diff_add(script, '+', &b[j++]);
		}
	}
	return 0;
}

static int diff_make_script(const struct diff_lines *a, const struct diff_lines *b, struct diff_lines *script)
{
	size_t shorter = a->count < b->count ? a->count : b->count, first = 0, last = 0;
	int r;

	script->items = calloc(a->count + b->count + 1, sizeof(*script->items));
	if (!script->items)
		return -ENOMEM;
	while (first < shorter && diff_is_same(&a->items[first], &b->items[first]))
		first++;
	while (last < shorter - first && diff_is_same(&a->items[a->count - 1 - last], &b->items[b->count - 1 - last]))
		last++;
	for (size_t i = 0; i < first; i++)
		diff_add(script, ' ', &a->items[i]);
	r = diff_compare(a->items + first, a->count - first - last, b->items + first, b->count - first - last, script);
	for (size_t i = a->count - last; i < a->count; i++)
		diff_add(script, ' ', &a->items[i]);
	return r;
}

/* The end of the hunk that begins with @change. */
static size_t diff_find_end(const struct diff_lines *script, size_t change)
{
	size_t end = change, quiet = 0;

	for (size_t i = change; i < script->count && quiet <= 2 * (size_t)CONTEXT; i++) {
		quiet = script->items[i].kind == ' ' ? quiet + 1 : 0;
		if (quiet == 0)
			end = i + 1;
	}
	return end + CONTEXT < script->count ? end + CONTEXT : script->count;
}

/* @numbers: how many lines of both texts were before; grow. */
static void diff_write_hunk(const struct diff_lines *script, size_t begin, size_t end, size_t numbers[2], FILE *file)
{
	size_t counts[2] = {0};

	for (size_t i = begin; i < end; i++) {
		counts[0] += script->items[i].kind != '+';
		counts[1] += script->items[i].kind != '-';
	}
	(void)fprintf(file, "@@ -%zu,%zu +%zu,%zu @@\n", numbers[0] + (counts[0] > 0), counts[0],
		      numbers[1] + (counts[1] > 0), counts[1]);
	for (size_t i = begin; i < end; i++) {
		const struct diff_line *line = &script->items[i];

		(void)fputc(line->kind, file);
		(void)fwrite(line->text, 1, line->length, file);
		if (line->text[line->length - 1] != '\n')
			(void)fputs("\n\\ No newline at end of file\n", file);
	}
	numbers[0] += counts[0];
	numbers[1] += counts[1];
}

int diff_write(const struct text_buffer *before, const struct text_buffer *after, const char *path, FILE *file)
{
	_cleanup_diff_lines_ struct diff_lines a = {0}, b = {0}, script = {0};
	size_t numbers[2] = {0}, done = 0;
	bool any = false;

	if (diff_split(before, &a) < 0 || diff_split(after, &b) < 0 || diff_make_script(&a, &b, &script) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < script.count; i++) {
		size_t begin = i > done + CONTEXT ? i - CONTEXT : done;

		if (script.items[i].kind == ' ')
			continue;
		if (!any)
			print_safe(file, "--- %s\n", before->size ? path : "/dev/null");
		if (!any)
			print_safe(file, "+++ %s\n", path);
		any = true;
		numbers[0] += begin - done;
		numbers[1] += begin - done;
		done = diff_find_end(&script, i);
		diff_write_hunk(&script, begin, done, numbers, file);
		i = done - 1;
	}
	return 0;
}
