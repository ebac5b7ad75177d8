/* SPDX-License-Identifier: Apache-2.0 */

/* The declarations: of operations, of the client's functions, of the driver's. */

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
