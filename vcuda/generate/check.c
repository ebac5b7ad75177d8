/* SPDX-License-Identifier: Apache-2.0 */

/* What NVIDIA's headers are compared with. */

#include <stdlib.h>
#include <string.h>

#include "vcuda/generate/definition.h"

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
