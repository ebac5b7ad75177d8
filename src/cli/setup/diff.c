/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/setup/diff.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

enum {
	CONTEXT = 3,
	TABLE_MAX = 4 * 1024 * 1024, /* entries; a difference that is larger is shown as one */
};

struct line {
	const char *start;
	size_t size; /* with its newline, if it has one */
};

struct lines {
	struct line *items;
	size_t count;
};

static void lines_clear(struct lines *lines)
{
	free(lines->items);
}

/* What becomes of a line, in the order in which a diff shows them. */
enum action { KEPT = ' ', REMOVED = '-', ADDED = '+' };

struct step {
	enum action action;
	struct line line;
};

struct script {
	struct step *steps;
	size_t count;
};

static int split(const struct text *text, struct lines *ret)
{
	const char *at = text ? text->data : NULL, *end = at ? at + text->size : NULL;
	size_t count = 1;

	for (const char *p = at; p < end; p++)
		count += *p == '\n';
	ret->items = calloc(count, sizeof(*ret->items));
	if (!ret->items)
		return -ENOMEM;
	while (at < end) {
		const char *newline = memchr(at, '\n', (size_t)(end - at)), *next = newline ? newline + 1 : end;

		ret->items[ret->count++] = (struct line){.start = at, .size = (size_t)(next - at)};
		at = next;
	}
	return 0;
}

static bool same(const struct line *a, const struct line *b)
{
	return a->size == b->size && memcmp(a->start, b->start, a->size) == 0;
}

static void add(struct script *script, enum action action, const struct line *lines, size_t count)
{
	for (size_t i = 0; i < count; i++)
		script->steps[script->count++] = (struct step){.action = action, .line = lines[i]};
}

/* By the longest common subsequence: table[i][j] is its length for the lines from i and from j on. */
static int compare_table(struct script *script, const struct lines *a, const struct lines *b)
{
	size_t width = b->count + 1, i, j;
	_cleanup_free_ uint32_t *table = calloc((a->count + 1) * width, sizeof(*table));

	if (!table)
		return -ENOMEM;
	for (i = a->count; i-- > 0;) {
		for (j = b->count; j-- > 0;) {
			uint32_t down = table[(i + 1) * width + j], right = table[i * width + j + 1];

			table[i * width + j] = same(&a->items[i], &b->items[j]) ? table[(i + 1) * width + j + 1] + 1 :
					       down > right			? down :
										  right;
		}
	}
	for (i = j = 0; i < a->count || j < b->count;) {
		if (i < a->count && j < b->count && same(&a->items[i], &b->items[j])) {
			add(script, KEPT, &a->items[i++], 1);
			j++;
		} else if (j == b->count || (i < a->count && table[(i + 1) * width + j] >= table[i * width + j + 1])) {
			add(script, REMOVED, &a->items[i++], 1);
		} else {
			add(script, ADDED, &b->items[j++], 1);
		}
	}
	return 0;
}

static int compare(struct script *script, struct lines a, struct lines b)
{
	size_t head = 0, tail = 0;
	struct line *kept = a.items;
	int r = 0;

	while (head < a.count && head < b.count && same(&a.items[head], &b.items[head]))
		head++;
	a = (struct lines){a.items + head, a.count - head};
	b = (struct lines){b.items + head, b.count - head};
	while (tail < a.count && tail < b.count && same(&a.items[a.count - tail - 1], &b.items[b.count - tail - 1]))
		tail++;
	a.count -= tail;
	b.count -= tail;
	add(script, KEPT, kept, head);
	if ((a.count + 1) * (b.count + 1) <= TABLE_MAX) {
		r = compare_table(script, &a, &b);
	} else {
		add(script, REMOVED, a.items, a.count);
		add(script, ADDED, b.items, b.count);
	}
	add(script, KEPT, a.items + a.count, tail);
	return r;
}

/* The steps of one hunk: changes that are at most two contexts apart. Return: false if there are no more. */
static bool next_hunk(const struct script *script, size_t from, size_t *ret_start, size_t *ret_end)
{
	size_t first = from, last;

	while (first < script->count && script->steps[first].action == KEPT)
		first++;
	if (first == script->count)
		return false;
	last = first;
	for (size_t i = first; i < script->count && i <= last + (size_t)2 * CONTEXT; i++)
		if (script->steps[i].action != KEPT)
			last = i;
	*ret_start = first - from > CONTEXT ? first - CONTEXT : from;
	*ret_end = script->count - last > CONTEXT + 1 ? last + CONTEXT + 1 : script->count;
	return true;
}

static size_t count_lines(const struct script *script, size_t start, size_t end, enum action without)
{
	size_t count = 0;

	for (size_t i = start; i < end; i++)
		count += script->steps[i].action != without;
	return count;
}

static void write_range(const struct script *script, size_t start, size_t end, enum action without, char sign, FILE *file)
{
	size_t before = count_lines(script, 0, start, without), count = count_lines(script, start, end, without);

	(void)fprintf(file, " %c%zu,%zu", sign, count ? before + 1 : before, count);
}

static void write_hunk(const struct script *script, size_t start, size_t end, FILE *file)
{
	(void)fputs("@@", file);
	write_range(script, start, end, ADDED, '-', file);
	write_range(script, start, end, REMOVED, '+', file);
	(void)fputs(" @@\n", file);
	for (size_t i = start; i < end; i++) {
		const struct step *step = &script->steps[i];

		(void)fputc((int)step->action, file);
		(void)fwrite(step->line.start, 1, step->line.size, file);
		if (step->line.start[step->line.size - 1] != '\n')
			(void)fputs("\n\\ No newline at end of file\n", file);
	}
}

int diff_write(const char *path, const struct text *from, const struct text *to, FILE *file)
{
	_cleanup_(lines_clear) struct lines a = {0};
	_cleanup_(lines_clear) struct lines b = {0};
	_cleanup_free_ struct step *steps = NULL;
	struct script script = {0};
	size_t start, end = 0;
	int r;

	r = split(from, &a);
	if (r == 0)
		r = split(to, &b);
	if (r == 0) {
		script.steps = steps = calloc(a.count + b.count + 1, sizeof(*steps));
		r = steps ? compare(&script, a, b) : -ENOMEM;
	}
	if (r < 0 || (!next_hunk(&script, 0, &start, &end) && !from == !to))
		return r;
	(void)fprintf(file, "--- %s\n", from ? path : "/dev/null");
	(void)fprintf(file, "+++ %s\n", to ? path : "/dev/null");
	for (size_t next = 0; next_hunk(&script, next, &start, &end); next = end)
		write_hunk(&script, start, end, file);
	return 0;
}
