/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Makes of cuda.def and nvml.def what would be written a hundred times by hand: `generate ops` and the other names of
 * outputs at the end of this file print one file each. It runs on the machine that builds, from the definitions
 * as the preprocessor sees them, and stops at the first one that it does not understand.
 */

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ARGUMENTS_MAX = 16, FIELDS_MAX = 3, TEXT_MAX = 96, FUNCTIONS_MAX = 1024, DOCS_COLUMNS = 116 };

struct argument {
	char kind[16];
	char field[FIELDS_MAX][TEXT_MAX];
};

struct function {
	char name[TEXT_MAX];
	const char *twins, *class;
	int version;
	const char *same;       /* the function that this is another name of */
	struct argument enters; /* what the client's function begins with, if it is not of its own writing */
	int count;
	struct argument argument[ARGUMENTS_MAX];
};

static const struct line {
	const char *name, *twins, *class, *same, *arguments;
	int version;
} lines[] = {
#define F(name_, version_, twins_, class_, ...) {#name_, #twins_, #class_, NULL, #__VA_ARGS__, version_},
#define A(name_, version_, same_) {#name_, "-", "alias", #same_, "", version_},
#define R(...) {#__VA_ARGS__, "-", "refused", NULL, "", 0},
#define S(name_, ...) {#name_, "-", "needed", NULL, #__VA_ARGS__, 0},
#include "vcuda/cuda.def"
#undef F
#undef A
#undef R
#undef S
};

static const struct line nvml_lines[] = {
#define N(name_, ...) {#name_, "-", "local", NULL, #__VA_ARGS__, 0},
#define T(name_, ...) {#name_, "-", "text", NULL, #__VA_ARGS__, 0},
#define A(name_, same_) {#name_, "-", "alias", #same_, "", 0},
#define R(...) {#__VA_ARGS__, "-", "refused", NULL, "", 0},
#include "vcuda/nvml.def"
#undef N
#undef T
#undef A
#undef R
};

static struct function functions[FUNCTIONS_MAX];
static int function_count;

static void generate_stop(const char *what, const char *where)
{
	fprintf(stderr, "generate: %s: %s\n", what, where);
	exit(1);
}

static void generate_copy(char *to, const char *from, size_t length, const char *where)
{
	if (length >= TEXT_MAX)
		generate_stop("too long", where);
	memcpy(to, from, length);
	to[length] = '\0';
}

/* "KIND(a, b, c)": commas divide, but for those within parentheses. */
static const char *generate_parse_argument(const char *text, struct argument *ret, const char *where)
{
	const char *open = strchr(text, '('), *begin;
	int depth = 1, field = 0;

	if (!open || (size_t)(open - text) >= sizeof(ret->kind))
		generate_stop("an argument without parentheses", where);
	memcpy(ret->kind, text, (size_t)(open - text));
	ret->kind[open - text] = '\0';
	begin = open + 1;
	for (text = begin; depth > 0; text++) {
		depth += (*text == '(') - (*text == ')');
		if (*text == '\0')
			generate_stop("an argument without end", where);
		if (depth > 0 && !(depth == 1 && *text == ','))
			continue;
		if (field == FIELDS_MAX)
			generate_stop("an argument of too many fields", where);
		while (*begin == ' ')
			begin++;
		generate_copy(ret->field[field++], begin, (size_t)(text - begin), where);
		begin = text + 1;
	}
	return text;
}

static bool generate_is(const char *text, const char *list)
{
	const size_t length = strlen(text);

	for (const char *at = list; length && (at = strstr(at, text)); at += length)
		if ((at == list || at[-1] == ' ') && (at[length] == ' ' || at[length] == '\0'))
			return true;
	return false;
}

static bool argument_is(const struct argument *argument, const char *kinds)
{
	return generate_is(argument->kind, kinds);
}

static void generate_parse(const struct line *line, const char *name, size_t length)
{
	struct function *function = &functions[function_count];
	const char *text = line->arguments;

	if (++function_count == FUNCTIONS_MAX)
		generate_stop("too many functions", name);
	generate_copy(function->name, name, length, name);
	function->twins = line->twins;
	function->class = line->class;
	function->version = line->version;
	function->same = line->same;
	for (text += strspn(text, " "); *text; text += strspn(text, " ")) {
		if (function->count == ARGUMENTS_MAX)
			generate_stop("too many arguments", function->name);
		text = generate_parse_argument(text, &function->argument[function->count++], function->name);
		/* No argument of the API's. */
		if (argument_is(&function->argument[function->count - 1], "SELF CURRENT"))
			function->enters = function->argument[--function->count];
	}
	for (int i = 0; i < function_count - 1; i++)
		if (strcmp(functions[i].name, function->name) == 0 && strcmp(functions[i].class, "needed") != 0)
			generate_stop("twice", function->name);
}

static bool function_is(const struct function *function, const char *classes)
{
	return generate_is(function->class, classes);
}

static bool function_has_twin(const struct function *function)
{
	return strcmp(function->twins, "-") != 0;
}

/* The types of handles: ours, and the API's. */
static const char *argument_handle_type(const struct argument *argument, int field)
{
	static const char *const types[][2] = {
		{"CONTEXT", "CUcontext"},  {"MODULE", "CUmodule"},   {"FUNC", "CUfunction"},
		{"KERNEL", "CUkernel"},    {"LIBRARY", "CUlibrary"}, {"STREAM", "CUstream"},
		{"EVENT", "CUevent"},      {"GRAPH", "CUgraph"},     {"NODE", "CUgraphNode"},
		{"EXEC", "CUgraphExec"},   {"POOL", "CUmemoryPool"}, {"MEMORY", "CUmemGenericAllocationHandle"},
		{"LINKER", "CUlinkState"},
	};

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (strcmp(types[i][0], argument->field[field]) == 0)
			return types[i][1];
	generate_stop("no such type of handle", argument->field[field]);
	return NULL;
}

static const char *argument_name(const struct argument *argument)
{
	return argument_is(argument, "DEVICE STREAM STRING AT NAME") ? argument->field[0] : argument->field[1];
}

/* As a parameter in C. */
static void argument_print(FILE *to, const struct argument *a)
{
	const char *name = argument_name(a);

	if (argument_is(a, "V"))
		fprintf(to, "%s %s", a->field[0], name);
	else if (argument_is(a, "P"))
		fprintf(to, "%s%s%s", a->field[0], a->field[0][strlen(a->field[0]) - 1] == '*' ? "" : " ", name);
	else if (argument_is(a, "DEVICE"))
		fprintf(to, "CUdevice %s", name);
	else if (argument_is(a, "STREAM"))
		fprintf(to, "CUstream %s", name);
	else if (argument_is(a, "AT"))
		fprintf(to, "CUdeviceptr %s", name);
	else if (argument_is(a, "STRING"))
		fprintf(to, "const char *%s", name);
	else if (argument_is(a, "NAME"))
		fprintf(to, "const char **%s", name);
	else if (argument_is(a, "H H0 DROP"))
		fprintf(to, "%s %s", argument_handle_type(a, 0), name);
	else if (argument_is(a, "HS"))
		fprintf(to, "const %s *%s", argument_handle_type(a, 0), name);
	else if (argument_is(a, "NEW"))
		fprintf(to, "%s *%s", argument_handle_type(a, 0), name);
	else if (argument_is(a, "IN"))
		fprintf(to, "const %s *%s", a->field[0], name);
	else if (argument_is(a, "OUT OUT0"))
		fprintf(to, "%s *%s", a->field[0], name);
	else
		generate_stop("no such kind of argument", a->kind);
}

static bool function_is_nvml(const struct function *function)
{
	return strncmp(function->name, "nvml", 4) == 0;
}

static const char *function_result(const struct function *function)
{
	if (function_is(function, "text"))
		return "const char *";
	return function_is_nvml(function) ? "nvmlReturn_t " : "CUresult ";
}

/* What the rest of a function is given of its beginning: nothing, the thread or the current context. */
static const char *function_entered(const struct function *function)
{
	return function->enters.field[0];
}

/* With another name and, for copies, with the stream that those without one use. */
static void function_print_head(const char *prefix, const struct function *function, const char *suffix, bool stream)
{
	const char *entered = strcmp(prefix, "on_") == 0 ? function_entered(function) : "";

	printf("%s%s%s%s(", function_result(function), prefix, function->name, suffix);
	if (*entered)
		printf("struct %s *%s", argument_is(&function->enters, "SELF") ? "thread" : "context", entered);
	for (int i = 0; i < function->count; i++) {
		printf("%s", i || *entered ? ", " : "");
		argument_print(stdout, &function->argument[i]);
	}
	if (stream)
		printf("%sCUstream stream", function->count ? ", " : "");
	else if (function->count == 0 && !*entered)
		printf("void");
	printf(")");
}

static bool function_takes_stream(const struct function *function)
{
	return strcmp(function->twins, "ptds") == 0;
}

/* Whether a person wrote it, for the generated names with and without an ending to call. */
static bool function_is_on(const struct function *function)
{
	return function->enters.kind[0] ||
	       (function_has_twin(function) && function_is(function, "hand compile local client"));
}

static bool function_has_op(const struct function *function)
{
	return !function_is(function, "local alias refused needed");
}

/* Of all that client and server must have from the same definitions: FNV-1a. */
static uint32_t function_digest(void)
{
	uint32_t digest = 2166136261U;

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		const char *const texts[] = {lines[i].name, lines[i].class, lines[i].arguments};

		for (size_t k = 0; k < sizeof(texts) / sizeof(texts[0]); k++)
			for (size_t at = 0; at <= strlen(texts[k]); at++)
				digest = (digest ^ (unsigned char)texts[k][at]) * 16777619U;
	}
	return digest;
}

static void generate_ops(void)
{
	printf("enum op {\n\tOP_BEGIN = WIRE_OPS - 1,\n");
	for (int i = 0; i < function_count; i++)
		if (function_has_op(&functions[i]))
			printf("\tOP_%s,\n", functions[i].name);
	printf("\tOP_END,\n};\n#define OP_DIGEST 0x%08xU\n", function_digest());
}

static int generate_compare(const void *a, const void *b)
{
	return strcmp(((const struct function *)a)->name, ((const struct function *)b)->name);
}

/* For docs/vcuda.md, in lines of its width. */
static void generate_refused(void)
{
	size_t column = 0;

	qsort(functions, (size_t)function_count, sizeof(*functions), generate_compare);
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

static const struct function *generate_find(const char *name)
{
	for (int i = 0; i < function_count; i++)
		if (strcmp(functions[i].name, name) == 0 && !function_is(&functions[i], "needed"))
			return &functions[i];
	generate_stop("no such function", name);
	return NULL;
}

static void generate_api(void)
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
			struct function other = *generate_find(f->same);

			memcpy(other.name, f->name, TEXT_MAX);
			function_print_head("", &other, "", false);
			printf(";\n");
			continue;
		}
		function_print_head("", f, "", false);
		printf(";\n");
		if (!function_has_twin(f))
			continue;
		printf("CUresult %s_%s(", f->name, f->twins);
		for (int k = 0; k < f->count; k++) {
			printf("%s", k ? ", " : "");
			argument_print(stdout, &f->argument[k]);
		}
		printf(");\n");
	}
	printf("#pragma GCC visibility pop\n");
	for (int i = 0; i < function_count; i++) {
		if (!function_is_on(&functions[i]))
			continue;
		function_print_head("on_", &functions[i], "", function_takes_stream(&functions[i]));
		printf(";\n");
	}
}

/* ---- the client ---- */

static int function_count_kind(const struct function *function, const char *kinds)
{
	int count = 0;

	for (int i = 0; i < function->count; i++)
		count += argument_is(&function->argument[i], kinds);
	return count;
}

static void stub_print_words(const struct function *f)
{
	printf("\tconst uint64_t words[] = {");
	for (int i = 0; i < f->count; i++) {
		const struct argument *a = &f->argument[i];
		const char *name = argument_name(a);

		if (argument_is(a, "STRING"))
			printf("strlen(%s), ", name);
		else if (argument_is(a, "IN"))
			printf("sizeof(*%s), ", name);
		else if (argument_is(a, "HS"))
			printf("%s * sizeof(*%s), ", a->field[2], name);
		else if (argument_is(a, "V DEVICE H H0 DROP STREAM AT"))
			printf("(uint64_t)%s, ", name);
		else if (argument_is(a, "P"))
			generate_stop("P in a function that is generated", f->name);
	}
	printf("0};\n");
	if (function_count_kind(f, "STRING IN HS") == 0)
		return;
	printf("\tconst struct call_part parts[] = {");
	for (int i = 0; i < f->count; i++) {
		const char *name = argument_name(&f->argument[i]);

		if (argument_is(&f->argument[i], "STRING"))
			printf("{%s, strlen(%s)}, ", name, name);
		else if (argument_is(&f->argument[i], "IN"))
			printf("{%s, sizeof(*%s)}, ", name, name);
		else if (argument_is(&f->argument[i], "HS"))
			printf("{%s, %s * sizeof(*%s)}, ", name, f->argument[i].field[2], name);
	}
	printf("};\n");
}

/* What a caller may not pass: no place for a result, a handle of another kind where nobody waits for the answer. */
static void stub_print_checks(const struct function *f)
{
	for (int i = 0; i < f->count; i++) {
		const struct argument *a = &f->argument[i];

		if (argument_is(a, "OUT NEW STRING IN NAME"))
			printf("\tif (!%s)\n\t\treturn call_fail(CUDA_ERROR_INVALID_VALUE);\n", argument_name(a));
		if (argument_is(a, "HS"))
			printf("\tif ((%s && !%s) || %s > CALL_HANDLES)\n"
			       "\t\treturn call_fail(CUDA_ERROR_INVALID_VALUE);\n",
			       a->field[2], argument_name(a), a->field[2]);
		if (argument_is(a, "H") && function_is(f, "async"))
			printf("\tif (wire_handle_type(%s) != WIRE_%s)\n"
			       "\t\treturn call_fail(CUDA_ERROR_INVALID_HANDLE);\n",
			       argument_name(a), a->field[0]);
	}
}

/* Results lie one behind the other, each at a multiple of 8. */
static void stub_print_outs(const struct function *f)
{
	for (int i = 0; i < f->count; i++)
		if (argument_is(&f->argument[i], "OUT OUT0 NEW"))
			printf("\tstruct {\n\t\t_Alignas(8) %s value;\n\t} out_%s;\n",
			       argument_is(&f->argument[i], "NEW") ? "uint64_t" : f->argument[i].field[0],
			       argument_name(&f->argument[i]));
	printf("\tuint64_t out[0");
	for (int i = 0; i < f->count; i++)
		if (argument_is(&f->argument[i], "OUT OUT0 NEW"))
			printf(" + sizeof(out_%s) / 8", argument_name(&f->argument[i]));
	printf("], *next = out;\n");
}

static void stub_print_results(const struct function *f)
{
	for (int i = 0; i < f->count; i++) {
		const char *name = argument_name(&f->argument[i]);

		if (argument_is(&f->argument[i], "OUT OUT0 NEW"))
			printf("\tmemcpy(&out_%s, next, sizeof(out_%s));\n\tnext += sizeof(out_%s) / 8;\n"
			       "\tif (%s)\n\t\t*%s = out_%s.value;\n",
			       name, name, name, name, name, name);
	}
}

static void stub_print_body(const struct function *f)
{
	const int words = function_count_kind(f, "V DEVICE H H0 DROP STREAM AT STRING IN HS");
	const int parts = function_count_kind(f, "STRING IN HS");
	const int outs = function_count_kind(f, "OUT OUT0 NEW");
	char arguments[TEXT_MAX * 2];

	(void)snprintf(arguments, sizeof(arguments), "OP_%s, words, %d, %s, %d", f->name, words,
		       parts ? "parts" : "NULL", parts);
	if (outs)
		stub_print_outs(f);
	stub_print_checks(f);
	printf("\tif (true) {\n");
	stub_print_words(f);
	if (function_count_kind(f, "NAME")) {
		for (int i = 0; i < f->count; i++)
			if (argument_is(&f->argument[i], "NAME"))
				printf("\treturn call_text(%s, %s);\n", arguments, argument_name(&f->argument[i]));
		printf("\t}\n");
		return;
	}
	if (function_is(f, "async")) {
		printf("\tif (true");
		for (int i = 0; i < f->count; i++)
			if (argument_is(&f->argument[i], "AT"))
				printf(" && range_is_known(%s, %s, %s)", f->argument[i].field[0],
				       f->argument[i].field[1], f->argument[i].field[2]);
			else if (argument_is(&f->argument[i], "H") && strcmp(f->argument[i].field[0], "EVENT") == 0)
				printf(" && call_fits_stream(%s, stream)", argument_name(&f->argument[i]));
		printf(")\n\t\treturn call_async(%s);\n\treturn call_sync(%s, NULL, 0);\n\t}\n", arguments, arguments);
		return;
	}
	if (!outs) {
		printf("\treturn call_sync(%s, NULL, 0);\n\t}\n", arguments);
		return;
	}
	printf("\tCUresult r = call_sync(%s, out, sizeof(out));\n\tif (r)\n\t\treturn r;\n\t}\n", arguments);
	stub_print_results(f);
	printf("\t(void)next;\n\treturn CUDA_SUCCESS;\n");
}

/* The beginning that many functions share: who calls, in which context, and what may not be passed to any of them. */
static void stub_print_entry(const struct function *f)
{
	const bool self = argument_is(&f->enters, "SELF");
	const char *name = *function_entered(f) ? function_entered(f) : "entered";

	if (!f->enters.kind[0])
		return;
	printf("\tstruct %s *%s;\n\tCUresult r = %s(&%s);\n\n\tif (r)\n\t\treturn r;\n", self ? "thread" : "context",
	       name, self ? "call_enter" : "context_current", name);
	for (int i = 0; i < f->count; i++)
		if (argument_is(&f->argument[i], "OUT NEW STRING IN"))
			printf("\tif (!%s)\n\t\treturn CUDA_ERROR_INVALID_VALUE;\n", argument_name(&f->argument[i]));
		else if (argument_is(&f->argument[i], "DEVICE"))
			printf("\tif (!client_device(%s))\n\t\treturn CUDA_ERROR_INVALID_DEVICE;\n",
			       argument_name(&f->argument[i]));
}

/* A call of the function with the twin's stream: the null stream is the thread's own. */
static void stub_print_twin(const struct function *f, const char *prefix, const char *suffix, bool own)
{
	const char *entered = strcmp(prefix, "on_") == 0 ? function_entered(f) : "";

	printf("\treturn %s%s%s(%s", prefix, f->name, suffix, entered);
	for (int i = 0; i < f->count; i++) {
		const struct argument *a = &f->argument[i];

		printf("%s", i || *entered ? ", " : "");
		if (own && argument_is(a, "STREAM"))
			printf("%s ? %s : WIRE_STREAM_THREAD", argument_name(a), argument_name(a));
		else if (own && strcmp(a->field[0], "const CUlaunchConfig *") == 0)
			printf("launch_config_of_thread(%s, &copy)", argument_name(a));
		else
			printf("%s", argument_name(a));
	}
	if (function_takes_stream(f))
		printf("%s%s", f->count ? ", " : "", own ? "WIRE_STREAM_THREAD" : "WIRE_STREAM_NULL");
	printf(");\n");
}

static void stub_print(const struct function *f)
{
	if (function_is_on(f)) {
		function_print_head("", f, "", false);
		printf("\n{\n");
		stub_print_entry(f);
		stub_print_twin(f, "on_", "", false);
		printf("}\n");
	} else if (function_is(f, "sync async wait server")) {
		function_print_head("", f, "", false);
		printf("\n{\n");
		stub_print_body(f);
		printf("}\n");
	}
	if (!function_has_twin(f))
		return;
	printf("CUresult %s_%s(", f->name, f->twins);
	for (int i = 0; i < f->count; i++) {
		printf("%s", i ? ", " : "");
		argument_print(stdout, &f->argument[i]);
	}
	printf(")\n{\n");
	if (strstr(f->name, "cuLaunchKernelEx"))
		printf("\tCUlaunchConfig copy;\n\n");
	stub_print_entry(f);
	stub_print_twin(f, function_is_on(f) ? "on_" : "", "", true);
	printf("}\n");
}

static void generate_stubs(void)
{
	for (int i = 0; i < function_count; i++) {
		const struct function *f = &functions[i];

		if (function_is(f, "needed"))
			continue;
		if (function_is(f, "refused")) {
			printf("%s%s(void)\n{\n\treturn %s(\"%s\");\n}\n", function_result(f), f->name,
			       function_is_nvml(f) ? "inquiry_refuse" : "call_refuse", f->name);
		} else if (function_is(f, "alias")) {
			struct function other = *generate_find(f->same);
			struct function target = other;

			memcpy(other.name, f->name, TEXT_MAX);
			target.twins = "-";
			function_print_head("", &other, "", false);
			printf("\n{\n");
			stub_print_twin(&target, "", "", false);
			printf("}\n");
		} else {
			stub_print(f);
		}
	}
}

/* What cuGetProcAddress() looks up, in the order of names and, of one name, of falling versions. */
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

static void entry_print_all(void)
{
	static struct entry entries[FUNCTIONS_MAX];
	int count = 0;

	for (int i = 0; i < function_count; i++) {
		struct entry *entry = &entries[count];
		char *suffix;

		if (function_is(&functions[i], "needed"))
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

/* ---- the server ---- */

static void generate_driver(void)
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
		if (function_is(&functions[i], "server hand compile"))
			printf("CUresult serve_%s(struct request *q);\n", functions[i].name);
}

/* The word of the first handle among the arguments, or none: with whose end that of a new one comes. */
static int case_parent(const struct function *f)
{
	int word = 0;

	for (int i = 0; i < f->count; i++) {
		if (argument_is(&f->argument[i], "H") && !(strcmp(f->argument[i].field[0], "NODE") == 0 &&
							   i + 1 < f->count && argument_is(&f->argument[i + 1], "H")))
			return word;
		word += !argument_is(&f->argument[i], "OUT OUT0 NEW NAME");
	}
	return -1;
}

/* What is made of a graph is there when the graph is gone. */
static bool case_outlives(const struct function *f, const struct argument *made)
{
	return strcmp(made->field[0], "EXEC") == 0 ||
	       (strcmp(made->field[0], "GRAPH") == 0 && strstr(f->name, "Clone"));
}

static void case_print_argument(const struct argument *a, int word)
{
	const char *name = argument_name(a);

	if (argument_is(a, "V") && strcmp(a->field[0], "float") == 0)
		generate_stop("a float as an argument", name);
	if (argument_is(a, "V"))
		printf("\tconst %s %s = (%s)q->argument[%d];\n", a->field[0], name, a->field[0], word);
	else if (argument_is(a, "AT"))
		printf("\tconst CUdeviceptr %s = q->argument[%d];\n", name, word);
	else if (argument_is(a, "H H0 DROP"))
		printf("\tuint64_t %s = 0;\n", name);
	else if (argument_is(a, "HS"))
		printf("\tuint64_t %s[REQUEST_HANDLES];\n", name);
	else if (argument_is(a, "STREAM"))
		printf("\tCUstream %s = 0;\n", name);
	else if (argument_is(a, "DEVICE"))
		printf("\tCUdevice %s = 0;\n", name);
	else if (argument_is(a, "STRING"))
		printf("\tconst char *%s = NULL;\n", name);
	else if (argument_is(a, "IN OUT OUT0"))
		printf("\t%s %s = {0};\n", a->field[0], name);
	else if (argument_is(a, "NEW"))
		printf("\tuint64_t %s = 0;\n", name);
	else if (argument_is(a, "NAME"))
		printf("\tconst char *%s = NULL;\n", name);
}

static void case_print_check(const struct argument *a, int word)
{
	const char *name = argument_name(a);

	if (argument_is(a, "H DROP"))
		printf("\tif (!r)\n\t\tr = request_handle(q, %d, WIRE_%s, &%s);\n", word, a->field[0], name);
	else if (argument_is(a, "H0"))
		printf("\tif (!r && q->argument[%d])\n\t\tr = request_handle(q, %d, WIRE_%s, &%s);\n", word, word,
		       a->field[0], name);
	else if (argument_is(a, "HS"))
		printf("\tif (!r)\n\t\tr = request_handles(q, %d, WIRE_%s, %s, %s);\n", word, a->field[0], a->field[2],
		       name);
	else if (argument_is(a, "STREAM"))
		printf("\tif (!r)\n\t\tr = request_stream(q, %d, &%s);\n", word, name);
	else if (argument_is(a, "DEVICE"))
		printf("\tif (!r)\n\t\tr = request_device(q, %d, &%s);\n", word, name);
	else if (argument_is(a, "STRING"))
		printf("\tif (!r)\n\t\tr = request_string(q, %d, %s, &%s);\n", word,
		       a->field[1][0] ? a->field[1] : "256", name);
	else if (argument_is(a, "IN"))
		printf("\tif (!r)\n\t\tr = request_struct(q, %d, &%s, sizeof(%s));\n"
		       "\tif (!r)\n\t\tr = STRUCT_CHECK(&%s);\n",
		       word, name, name, name);
}

static void case_print(const struct function *f)
{
	const int parent = case_parent(f);
	int word = 0;

	printf("static CUresult serve_%s(struct request *q)\n{\n", f->name);
	for (int i = 0; i < f->count; i++) {
		case_print_argument(&f->argument[i], word);
		word += !argument_is(&f->argument[i], "OUT OUT0 NEW NAME");
	}
	printf("\tCUresult r = driver.%s ? request_words(q, %d) : CUDA_ERROR_NOT_SUPPORTED;\n\n", f->name, word);
	word = 0;
	for (int i = 0; i < f->count; i++) {
		case_print_check(&f->argument[i], word);
		word += !argument_is(&f->argument[i], "OUT OUT0 NEW NAME");
	}
	printf("\tif (!r)\n\t\tr = driver.%s(", f->name);
	for (int i = 0; i < f->count; i++)
		printf("%s%s%s", i ? ", " : "", argument_is(&f->argument[i], "IN OUT OUT0 NEW NAME") ? "&" : "",
		       argument_name(&f->argument[i]));
	printf(");\n");
	if (function_count_kind(f, "OUT OUT0 NEW NAME"))
		printf("\tif (r)\n\t\treturn r;\n");
	word = 0;
	for (int i = 0; i < f->count; i++) {
		const struct argument *a = &f->argument[i];

		if (argument_is(a, "OUT OUT0"))
			printf("\trequest_reply(q, &%s, sizeof(%s));\n", a->field[1], a->field[1]);
		else if (argument_is(a, "NEW") && parent >= 0 && !case_outlives(f, a))
			printf("\tr = request_reply_handle(q, WIRE_%s, %s, q->argument[%d]);\n", a->field[0],
			       a->field[1], parent);
		else if (argument_is(a, "NEW"))
			printf("\tr = request_reply_handle(q, WIRE_%s, %s, 0);\n", a->field[0], a->field[1]);
		else if (argument_is(a, "NAME"))
			printf("\trequest_reply_text(q, %s);\n", a->field[0]);
	}
	printf("\treturn r;\n}\n\n");
}

/* What ends an object has nothing but its handle. */
static void case_print_end(const struct function *f)
{
	const struct argument *a = &f->argument[0];

	if (f->count != 1 || !argument_is(a, "DROP"))
		generate_stop("more than a handle that is dropped", f->name);
	printf("static CUresult serve_%s(struct request *q)\n{\n"
	       "\tCUresult r = driver.%s ? request_words(q, 1) : CUDA_ERROR_NOT_SUPPORTED;\n\n"
	       "\treturn r ? r : request_end(q, 0, WIRE_%s, driver.%s);\n}\n\n",
	       f->name, f->name, a->field[0], f->name);
}

static void generate_cases(void)
{
	for (int i = 0; i < function_count; i++)
		if (function_is(&functions[i], "sync async wait client"))
			(function_count_kind(&functions[i], "DROP") ? case_print_end : case_print)(&functions[i]);
	printf("const struct request_kind request_kinds[] = {\n");
	for (int i = 0; i < function_count; i++)
		if (function_has_op(&functions[i]))
			printf("\t[OP_%s] = {serve_%s, \"%s\", %s},\n", functions[i].name, functions[i].name,
			       functions[i].name, function_is(&functions[i], "wait compile") ? "true" : "false");
	printf("};\n");
}

/* ---- what NVIDIA's header is compared with ---- */

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
		generate_stop("out of memory", f->name);
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

		if (function_is(f, "refused needed"))
			continue;
		if (function_is(f, "alias")) {
			struct function other = *generate_find(f->same);

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
static void generate_check(void)
{
	printf("#include <stddef.h>\n#include <stdio.h>\n#ifdef CHECK_OURS\n#include \"vcuda/types.h\"\n"
	       "#define CUDA_VERSION 99999\n#else\n#define __CUDA_API_VERSION_INTERNAL 1\n#include <cuda.h>\n"
	       "#include <cudaProfiler.h>\n");
	check_print_functions();
	check_print_main("members.h");
}

/* The same of NVML. It has no versions, so CHECK_NAME says that the header has a function. */
static void check_print_nvml(void)
{
	printf("#include <stddef.h>\n#include <stdio.h>\n#define CUDA_VERSION 0\n#ifdef CHECK_OURS\n"
	       "#include \"vcuda/nvml/types.h\"\n#else\n#define NVML_NO_UNVERSIONED_FUNC_DEFS 1\n#include <nvml.h>\n");
	check_print_functions();
	check_print_main("nvml_members.h");
}

/* What the file that is made stands on. */
static void generate_includes(const char *output)
{
	static const char *const lists[][2] = {
		{"ops", "\"vcuda/wire.h\""},
		{"nvml-api", "\"vcuda/nvml/types.h\""},
		{"nvml-stubs", "\"vcuda/nvml/inquiry.h\" \"vcuda/nvml_api.h\""},
		{"api driver", "\"vcuda/types.h\""},
		{"stubs", "<string.h> \"vcuda/client/call.h\" \"vcuda/client/context.h\" "
			  "\"vcuda/client/launch.h\" \"vcuda/client/range.h\" "
			  "\"vcuda/client_api.h\" "
			  "\"vcuda/ops.h\""},
		{"cases", "\"vcuda/driver_api.h\" \"vcuda/ops.h\" \"vcuda/server/driver.h\" \"vcuda/server/handle.h\" "
			  "\"vcuda/server/request.h\""},
	};

	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
		for (const char *at = lists[i][1]; generate_is(output, lists[i][0]) && *at; at += strspn(at, " ")) {
			printf("#include %.*s\n", (int)strcspn(at, " "), at);
			at += strcspn(at, " ");
		}
	if (generate_is(output, "ops api driver nvml-api"))
		printf("#pragma once\n");
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*print)(void);
	} outputs[] = {
		{"ops", generate_ops},
		{"api", generate_api},
		{"stubs", generate_stubs},
		{"entries", entry_print_all},
		{"driver", generate_driver},
		{"cases", generate_cases},
		{"check", generate_check},
		{"nvml-api", generate_api},
		{"refused", generate_refused},
		{"nvml-stubs", generate_stubs},
		{"nvml-check", check_print_nvml},
	};
	const bool nvml = argc == 2 && strncmp(argv[1], "nvml", 4) == 0;
	const struct line *const list = nvml ? nvml_lines : lines;
	const size_t count = nvml ? sizeof(nvml_lines) / sizeof(*list) : sizeof(lines) / sizeof(*list);

	for (size_t i = 0; i < count; i++)
		for (const char *name = list[i].name; *name; name += strspn(name, " ")) {
			generate_parse(&list[i], name, strcspn(name, " "));
			name += strcspn(name, " ");
		}
	if (argc == 2 && !generate_is(argv[1], "refused"))
		printf("/* Made by src/vcuda/generate.c of src/vcuda/%s.def. */\n", nvml ? "nvml" : "cuda");
	generate_includes(argc == 2 ? argv[1] : "");
	for (size_t i = 0; argc == 2 && i < sizeof(outputs) / sizeof(outputs[0]); i++)
		if (strcmp(outputs[i].name, argv[1]) == 0) {
			outputs[i].print();
			return ferror(stdout) || fflush(stdout) ? 1 : 0;
		}
	fprintf(stderr,
		"usage: generate ops|api|stubs|entries|driver|cases|check|refused|nvml-api|nvml-stubs|nvml-check\n");
	return 1;
}
