/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The declarations: of operations, of the client's functions, of the driver's; the tables in which functions are
 * found; what NVIDIA's headers are compared with.
 */

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vcuda/generate/definition.h"

enum { DOCS_COLUMNS = 116 };

/* Only those of which nothing but the result is read. */
static void api_print_ops_that(const char *name, const char *kinds)
{
	printf("#define OP_%s(op) (false", name);
	for (int i = 0; i < function_count; i++)
		if (definition_is(functions[i].driver, kinds) &&
		    function_count_kind(&functions[i], "P OUT OUT0 NEW NAME") == 0)
			printf(" || (op) == OP_%s", functions[i].name);
	printf(")\n");
}

void api_print_ops(void)
{
	printf("enum op {\n\tOP_BEGIN = WIRE_OPS - 1,\n");
	for (int i = 0; i < function_count; i++)
		if (function_has_op(&functions[i]))
			printf("\tOP_%s,\n", functions[i].name);
	printf("\tOP_END,\n};\n#define OP_DIGEST 0x%08xU\n", function_digest());
	/* Those that take as long as the GPU does; those in which the driver prints what kernels have printed. */
	api_print_ops_that("ASKS", "asks");
	api_print_ops_that("PRINTS", "asks waits");
}

static int api_compare(const void *a, const void *b)
{
	return strcmp(((const struct function *)a)->name, ((const struct function *)b)->name);
}

/* For docs/vcuda.md, in lines of its width. */
void api_print_refused(void)
{
	size_t column = 0;

	qsort(functions, (size_t)function_count, sizeof(*functions), api_compare);
	for (int i = 0; i < function_count; i++) {
		const char *name = functions[i].name;

		if (!function_is(&functions[i], "refused"))
			continue;
		if (column > 0 && column + 1 + strlen(name) > DOCS_COLUMNS) {
			printf("\n");
			column = 0;
		}
		column += (size_t)printf("%s%s", column ? " " : "", name);
	}
	printf("\n");
}

void api_print_all(void)
{
	printf("struct thread;\nstruct context;\n#pragma GCC visibility push(default)\n");
	for (int i = 0; i < function_count; i++) {
		const struct function *f = &functions[i];

		if (function_is(f, "refused")) {
			printf("%s%s(void);\n", function_result(f), f->name);
			continue;
		}
		if (function_is(f, "alias")) {
			struct function other = *definition_find(f->same);

			memcpy(other.name, f->name, TEXT_MAX);
			function_print_head("", &other, "", false);
			printf(";\n");
			continue;
		}
		function_print_head("", f, "", false);
		printf(";\n");
		if (!function_has_twin(f))
			continue;
		function_print_twin_head(f);
		printf(";\n");
	}
	printf("#pragma GCC visibility pop\n");
	for (int i = 0; i < function_count; i++) {
		if (!function_is_on(&functions[i]))
			continue;
		function_print_head("on_", &functions[i], "", function_takes_stream(&functions[i]));
		printf(";\n");
	}
}

void api_print_driver(void)
{
	printf("struct driver_api {\n");
	for (int i = 0; i < function_count; i++) {
		if (function_is(&functions[i], "alias refused"))
			continue;
		printf("\t");
		function_print_head("(*", &functions[i], ")", false);
		printf(";\n");
	}
	printf("};\n\n#define DRIVER_API(X) \\\n");
	for (int i = 0; i < function_count; i++)
		if (!function_is(&functions[i], "alias refused"))
			printf("\tX(%s) \\\n", functions[i].name);
	printf("\n\n/* Those that are written by hand. */\nstruct request;\n");
	for (int i = 0; i < function_count; i++)
		if (function_is(&functions[i], "server hand"))
			printf("CUresult serve_%s(struct request *q);\n", functions[i].name);
}

/* The table in which cuGetProcAddress() looks: in the order of names and, of one name, of falling versions. */

struct entry {
	char name[TEXT_MAX];
	int version;
	const struct function *function;
};

static int entry_compare(const void *a, const void *b)
{
	const struct entry *one = a, *other = b;
	const int r = strcmp(one->name, other->name);

	return r ? r : other->version - one->version;
}

void entry_print_all(void)
{
	static struct entry entries[FUNCTIONS_MAX];
	int count = 0;

	for (int i = 0; i < function_count; i++) {
		struct entry *entry = &entries[count];
		char *suffix;

		/* A refused function is not found by name, so that the program takes another way. */
		if (function_is(&functions[i], "refused") && !functions[i].same)
			continue;
		count++;
		entry->function = &functions[i];
		entry->version = functions[i].version;
		memcpy(entry->name, functions[i].name, TEXT_MAX);
		suffix = strrchr(entry->name, '_');
		if (suffix && suffix[1] == 'v' && strspn(suffix + 2, "0123456789") == strlen(suffix + 2))
			*suffix = '\0';
	}
	qsort(entries, (size_t)count, sizeof(*entries), entry_compare);
	printf("static const struct entry entries[] = {\n");
	for (int i = 0; i < count; i++) {
		const struct function *f = entries[i].function;

		printf("\t{\"%s\", %d, (void *)%s, ", entries[i].name, entries[i].version, f->name);
		if (function_has_twin(f))
			printf("(void *)%s_%s},\n", f->name, f->twins);
		else
			printf("NULL},\n");
	}
	printf("};\n");
}

/* The tables of tables.def: an array of pointers each, and functions for the slots that are not served. */

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

/* What NVIDIA's headers are compared with. */

/* What is only read is const here; some functions of the header lack that, which makes no difference to a call. */
static void check_print_type(const struct function *f, bool is_const)
{
	char *text = NULL, *at;
	size_t size = 0;
	FILE *to = open_memstream(&text, &size);

	for (int i = 0; i < f->count; i++) {
		fprintf(to, "%s", i ? ", " : "");
		argument_print(to, &f->argument[i]);
	}
	if (fclose(to) != 0)
		definition_stop("out of memory", f->name);
	for (int i = 0; i < f->count && !is_const; i++)
		while (argument_is(&f->argument[i], "IN HS") && (at = strstr(text, "const ")))
			memmove(at, at + 6, strlen(at + 6) + 1);
	printf("%s(*)(%s)", function_result(f), f->count ? text : "void");
	free(text);
}

/* As the header declares it: its types are its own there, so that each name must be of the right kind. */
static void check_print_function(const struct function *f, const char *name, const char *suffix)
{
	if (function_is_nvml(f))
		printf("#ifdef CHECK_%s\n", name);
	else
		printf("#if CUDA_VERSION >= %d\n", f->version);
	printf("_Static_assert(__builtin_types_compatible_p(__typeof__(&%s%s),\n\t", name, suffix);
	check_print_type(f, true);
	printf(") ||\n\t__builtin_types_compatible_p(__typeof__(&%s%s), ", name, suffix);
	check_print_type(f, false);
	printf("), \"%s%s\");\n#endif\n", name, suffix);
}

static void check_print_functions(void)
{
	char suffix[8];

	for (int i = 0; i < function_count; i++) {
		const struct function *f = &functions[i];

		if (function_is(f, "refused"))
			continue;
		if (function_is(f, "alias")) {
			struct function other = *definition_find(f->same);

			other.version = f->version;
			check_print_function(&other, f->name, "");
			continue;
		}
		check_print_function(f, f->name, "");
		(void)snprintf(suffix, sizeof(suffix), "_%s", f->twins);
		if (function_has_twin(f))
			check_print_function(f, f->name, suffix);
	}
}

/* The API's type of an argument, without what stands around it: "const CUuuid *" is CUuuid. */
static bool check_find_type(const struct argument *a, char to[TEXT_MAX])
{
	const char *type = a->field[0];

	if (argument_is(a, "H H0 DROP HS NEW"))
		type = argument_handle_type(a, 0);
	else if (!argument_is(a, "V P IN OUT OUT0"))
		return false;
	if (strncmp(type, "const ", 6) == 0)
		type += 6;
	(void)snprintf(to, TEXT_MAX, "%.*s", (int)strcspn(type, " *"), type);
	return strncmp(to, "CU", 2) == 0 || strncmp(to, "cuuint", 6) == 0 || strncmp(to, "nvml", 4) == 0;
}

static void check_print_sizes(void)
{
	static char seen[FUNCTIONS_MAX][TEXT_MAX];
	int count = 0;

	for (int i = 0; i < function_count; i++)
		for (int k = 0; k < functions[i].count && count < FUNCTIONS_MAX; k++) {
			bool known = !check_find_type(&functions[i].argument[k], seen[count]);

			for (int j = 0; j < count && !known; j++)
				known = strcmp(seen[j], seen[count]) == 0;
			if (known)
				continue;
			if (function_is_nvml(&functions[i]))
				printf("#if defined CHECK_OURS || defined CHECK_%s\n", functions[i].name);
			else
				printf("#if CUDA_VERSION >= %d\n", functions[i].version);
			printf("\tprintf(\"%s has %%zu bytes\\n\", sizeof(%s));\n#endif\n", seen[count], seen[count]);
			count++;
		}
}

static void check_print_main(const char *members)
{
	printf("#endif\n#define MEMBER(type, member) \\\n"
	       "\tprintf(#type \".\" #member \" is at %%zu\\n\", offsetof(type, member));\n"
	       "int main(void)\n{\n");
	check_print_sizes();
	printf("#include \"%s\"\n\treturn 0;\n}\n", members);
}

/* With CHECK_OURS, a program that says how large our types are; else the same of the header's, and all functions. */
void check_print_cuda(void)
{
	printf("#include <stddef.h>\n#include <stdio.h>\n#ifdef CHECK_OURS\n#include \"vcuda/protocol/types.h\"\n"
	       "#define CUDA_VERSION 99999\n#else\n#define __CUDA_API_VERSION_INTERNAL 1\n#include <cuda.h>\n"
	       "#include <cudaProfiler.h>\n");
	check_print_functions();
	check_print_main("members.h");
}

/* The same of NVML. It has no versions, so CHECK_NAME says that the header has a function. */
void check_print_nvml(void)
{
	printf("#include <stddef.h>\n#include <stdio.h>\n#define CUDA_VERSION 0\n#ifdef CHECK_OURS\n"
	       "#include \"vcuda/nvml/types.h\"\n#else\n#define NVML_NO_UNVERSIONED_FUNC_DEFS 1\n#include <nvml.h>\n");
	check_print_functions();
	check_print_main("nvml_members.h");
}
