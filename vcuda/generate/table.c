/* SPDX-License-Identifier: Apache-2.0 */

/* The tables of tables.def: an array of pointers each, and functions for the slots that are not served. */

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vcuda/generate/definition.h"

enum { TABLE_WORDS_MAX = 128, TABLE_UUID = 36 };

static const struct table_line {
	const char *name, *uuid, *begins; /* of a table; name is NULL for one that is refused */
	int number;                       /* of words, or the slot */
	const char *class, *function;     /* of a slot */
} lines[] = {
#define T(name_, uuid_, words_, begins_) {#name_, #uuid_, #begins_, words_, NULL, NULL},
#define P(slot_, class_, function_) {NULL, NULL, NULL, slot_, #class_, #function_},
#define K(uuid_) {NULL, #uuid_, NULL, 0, NULL, NULL},
#include "vcuda/protocol/tables.def"
#undef T
#undef P
#undef K
};
#define LINES (sizeof(lines) / sizeof(lines[0]))

static void table_print_uuid(const char *uuid)
{
	if (strlen(uuid) != TABLE_UUID)
		definition_stop("not as long as a UUID", uuid);
	for (const char *at = uuid; *at; at += 2) {
		at += *at == '-';
		if (strspn(at, "0123456789abcdef") < 2)
			definition_stop("not a UUID", uuid);
		printf("0x%.2s,", at);
	}
}

/* The line of a table's slot, or NULL. */
static const struct table_line *table_find_slot(const struct table_line *table, int slot)
{
	for (const struct table_line *line = table + 1; line < lines + LINES && line->class; line++)
		if (line->number == slot)
			return line;
	return NULL;
}

static void table_check(const struct table_line *table)
{
	const int first = definition_is(table->begins, "size");

	if (!definition_is(table->begins, "size slots") || table->number < 2 || table->number > TABLE_WORDS_MAX)
		definition_stop("a table of no such form", table->name);
	for (const struct table_line *line = table + 1; line < lines + LINES && line->class; line++) {
		if (line->number < first || line->number >= table->number ||
		    table_find_slot(table, line->number) != line)
			definition_stop("a slot that is not there, or twice", table->name);
		if (!definition_is(line->class, "api own zero none integrity"))
			definition_stop("no such class of slots", line->class);
		if (definition_is(line->class, "api"))
			(void)definition_find(line->function);
	}
}

static void table_print_slot(const struct table_line *table, int slot)
{
	const struct table_line *line = table_find_slot(table, slot);

	printf("\t[%d] = (const void *)", slot);
	if (!line)
		printf("refuse_%s_%d,\n", table->name, slot);
	else if (definition_is(line->class, "zero none"))
		printf("%s,\n", definition_is(line->class, "zero") ? "table_do_nothing" : "table_have_none");
	else
		printf("%s%s,\n", definition_is(line->class, "api") ? "" : "table_", line->function);
}

/* Without a size, what comes behind the last slot is NULL. */
static void table_print(const struct table_line *table)
{
	const int first = definition_is(table->begins, "size"), end = first ? table->number : table->number - 1;

	table_check(table);
	for (int i = first; i < end; i++)
		if (!table_find_slot(table, i))
			printf("static CUresult refuse_%s_%d(void)\n{\n\treturn table_refuse_slot(\"%s[%d]\");\n}\n",
			       table->name, i, table->uuid, i);
	printf("static const void *const words_%s[%d] = {\n", table->name, table->number);
	if (first)
		printf("\t[0] = (const void *)sizeof(words_%s),\n", table->name);
	for (int i = first; i < end; i++)
		table_print_slot(table, i);
	printf("};\n");
}

static bool table_is_optional(const struct table_line *table)
{
	for (const struct table_line *line = table + 1; line < lines + LINES && line->class; line++)
		if (definition_is(line->class, "integrity"))
			return true;
	return false;
}

void table_print_all(void)
{
	for (const struct table_line *line = lines; line < lines + LINES; line++) {
		if (!line->name)
			continue;
		printf("%s", table_is_optional(line) ? "#if VCUDA_INTEGRITY\n" : "");
		table_print(line);
		printf("%s", table_is_optional(line) ? "#endif\n" : "");
	}
	printf("static const struct table tables[] = {\n");
	for (const struct table_line *line = lines; line < lines + LINES; line++) {
		if (line->class)
			continue;
		printf("%s\t{{", line->name && table_is_optional(line) ? "#if VCUDA_INTEGRITY\n" : "");
		table_print_uuid(line->uuid);
		printf("}, %s%s},\n", line->name ? "words_" : "NULL", line->name ? line->name : "");
		printf("%s", line->name && table_is_optional(line) ? "#endif\n" : "");
	}
	printf("};\n");
}
