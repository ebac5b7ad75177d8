/* SPDX-License-Identifier: Apache-2.0 */

/* The declarations: of operations, of the client's functions, of the driver's. */

#include <stdlib.h>
#include <string.h>

#include "vcuda/generate/definition.h"
#include "vcuda/generate/outputs.h"

enum { DOCS_COLUMNS = 116 };

void api_print_ops(void)
{
	printf("enum op {\n\tOP_BEGIN = WIRE_OPS - 1,\n");
	for (int i = 0; i < function_count; i++)
		if (function_has_op(&functions[i]))
			printf("\tOP_%s,\n", functions[i].name);
	printf("\tOP_END,\n};\n#define OP_DIGEST 0x%08xU\n", function_digest());
	/* Those that take as long as the GPU does. */
	printf("#define OP_ASKS(op) (false");
	for (int i = 0; i < function_count; i++)
		if (strcmp(functions[i].driver, "asks") == 0)
			printf(" || (op) == OP_%s", functions[i].name);
	printf(")\n");
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

		if (function_is(f, "needed"))
			continue;
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
