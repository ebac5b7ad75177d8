/* SPDX-License-Identifier: Apache-2.0 */

#include "vcuda/generate/definition.h"

#include <stdlib.h>
#include <string.h>

static const struct line {
	const char *name, *twins, *class, *same, *arguments;
	int version;
	const char *driver;
} lines[] = {
#define F(name_, version_, twins_, class_, driver_, ...) \
	{#name_, #twins_, #class_, NULL, #__VA_ARGS__, version_, #driver_},
#define A(name_, version_, same_) {#name_, "-", "alias", #same_, "", version_, "-"},
#define R(version_, ...) {#__VA_ARGS__, "-", "refused", NULL, "", version_, "-"},
#define E(version_, ...) {#__VA_ARGS__, "-", "refused", "found", "", version_, "-"},
#include "vcuda/protocol/cuda.def"
#undef F
#undef A
#undef R
#undef E
};

static const struct line nvml_lines[] = {
#define N(name_, ...) {#name_, "-", "local", NULL, #__VA_ARGS__, 0, "-"},
#define T(name_, ...) {#name_, "-", "text", NULL, #__VA_ARGS__, 0, "-"},
#define A(name_, same_) {#name_, "-", "alias", #same_, "", 0, "-"},
#define R(...) {#__VA_ARGS__, "-", "refused", NULL, "", 0, "-"},
#include "vcuda/protocol/nvml.def"
#undef N
#undef T
#undef A
#undef R
};

struct function functions[FUNCTIONS_MAX];
int function_count;

_Noreturn void definition_stop(const char *what, const char *where)
{
	fprintf(stderr, "generate: %s: %s\n", what, where);
	exit(1);
}

static void definition_copy(char *to, const char *from, size_t length, const char *where)
{
	if (length >= TEXT_MAX)
		definition_stop("too long", where);
	memcpy(to, from, length);
	to[length] = '\0';
}

/* "KIND(a, b, c)": commas divide, but for those within parentheses. */
static const char *definition_parse_argument(const char *text, struct argument *ret, const char *where)
{
	const char *open = strchr(text, '('), *begin;
	int depth = 1, field = 0;

	if (!open || (size_t)(open - text) >= sizeof(ret->kind))
		definition_stop("an argument without parentheses", where);
	memcpy(ret->kind, text, (size_t)(open - text));
	ret->kind[open - text] = '\0';
	begin = open + 1;
	for (text = begin; depth > 0; text++) {
		depth += (*text == '(') - (*text == ')');
		if (*text == '\0')
			definition_stop("an argument without end", where);
		if (depth > 0 && !(depth == 1 && *text == ','))
			continue;
		if (field == FIELDS_MAX)
			definition_stop("an argument of too many fields", where);
		while (*begin == ' ')
			begin++;
		definition_copy(ret->field[field++], begin, (size_t)(text - begin), where);
		begin = text + 1;
	}
	return text;
}

bool definition_is(const char *text, const char *list)
{
	const size_t length = strlen(text);

	for (const char *at = list; length && (at = strstr(at, text)); at += length)
		if ((at == list || at[-1] == ' ') && (at[length] == ' ' || at[length] == '\0'))
			return true;
	return false;
}

bool argument_is(const struct argument *argument, const char *kinds)
{
	return definition_is(argument->kind, kinds);
}

static void definition_parse(const struct line *line, const char *name, size_t length)
{
	struct function *function = &functions[function_count];
	const char *text = line->arguments;

	if (++function_count == FUNCTIONS_MAX)
		definition_stop("too many functions", name);
	definition_copy(function->name, name, length, name);
	function->twins = line->twins;
	function->class = line->class;
	function->driver = line->driver;
	function->version = line->version;
	function->same = line->same;
	for (text += strspn(text, " "); *text; text += strspn(text, " ")) {
		if (function->count == ARGUMENTS_MAX)
			definition_stop("too many arguments", function->name);
		text = definition_parse_argument(text, &function->argument[function->count++], function->name);
		/* No argument of the API's. */
		if (argument_is(&function->argument[function->count - 1], "SELF CURRENT"))
			function->enters = function->argument[--function->count];
	}
	/* Whether other threads go on meanwhile is for each to be said. Nobody waits for the answer of an async one. */
	if (!function_is_nvml(function) &&
	    !definition_is(line->driver, !function_has_op(function)       ? "-"
					 : function_is(function, "async") ? "now begins"
									  : "now begins waits asks"))
		definition_stop("what the driver does meanwhile is not said", function->name);
	for (int i = 0; i < function_count - 1; i++)
		if (strcmp(functions[i].name, function->name) == 0)
			definition_stop("twice", function->name);
}

void definition_read(bool nvml)
{
	const struct line *const list = nvml ? nvml_lines : lines;
	const size_t count = nvml ? sizeof(nvml_lines) / sizeof(*list) : sizeof(lines) / sizeof(*list);

	for (size_t i = 0; i < count; i++)
		for (const char *name = list[i].name; *name; name += strspn(name, " ")) {
			definition_parse(&list[i], name, strcspn(name, " "));
			name += strcspn(name, " ");
		}
}

bool function_is(const struct function *function, const char *classes)
{
	return definition_is(function->class, classes);
}

bool function_has_twin(const struct function *function)
{
	return strcmp(function->twins, "-") != 0;
}

/* The types of handles: ours, and the API's. */
const char *argument_handle_type(const struct argument *argument, int field)
{
	static const char *const types[][2] = {
		{"CONTEXT", "CUcontext"},  {"MODULE", "CUmodule"},   {"FUNC", "CUfunction"},
		{"KERNEL", "CUkernel"},    {"LIBRARY", "CUlibrary"}, {"STREAM", "CUstream"},
		{"EVENT", "CUevent"},      {"GRAPH", "CUgraph"},     {"NODE", "CUgraphNode"},
		{"EXEC", "CUgraphExec"},   {"POOL", "CUmemoryPool"}, {"MEMORY", "CUmemGenericAllocationHandle"},
		{"LINKER", "CUlinkState"}, {"ARRAY", "CUarray"},     {"MIPMAP", "CUmipmappedArray"},
		{"TEXREF", "CUtexref"},    {"SURFREF", "CUsurfref"}, {"OBJECT", "CUuserObject"},
	};

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (strcmp(types[i][0], argument->field[field]) == 0)
			return types[i][1];
	definition_stop("no such type of handle", argument->field[field]);
}

const char *argument_name(const struct argument *argument)
{
	return argument_is(argument, "DEVICE STREAM STRING AT NAME") ? argument->field[0] : argument->field[1];
}

void argument_print(FILE *to, const struct argument *a)
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
		definition_stop("no such kind of argument", a->kind);
}

bool function_is_nvml(const struct function *function)
{
	return strncmp(function->name, "nvml", 4) == 0;
}

const char *function_result(const struct function *function)
{
	if (function_is(function, "text"))
		return "const char *";
	return function_is_nvml(function) ? "nvmlReturn_t " : "CUresult ";
}

const char *function_entered(const struct function *function)
{
	return function->enters.field[0];
}

void function_print_head(const char *prefix, const struct function *function, const char *suffix, bool stream)
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

void function_print_twin_head(const struct function *function)
{
	printf("CUresult %s_%s(", function->name, function->twins);
	for (int i = 0; i < function->count; i++) {
		printf("%s", i ? ", " : "");
		argument_print(stdout, &function->argument[i]);
	}
	printf(")");
}

bool function_takes_stream(const struct function *function)
{
	return strcmp(function->twins, "ptds") == 0;
}

bool function_is_on(const struct function *function)
{
	return function->enters.kind[0] || (function_has_twin(function) && function_is(function, "hand local client"));
}

bool function_has_op(const struct function *function)
{
	return !function_is(function, "local alias refused");
}

uint32_t function_digest(void)
{
	uint32_t digest = 2166136261U;

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		const char *const texts[] = {lines[i].name, lines[i].class, lines[i].driver, lines[i].arguments};

		for (size_t k = 0; k < sizeof(texts) / sizeof(texts[0]); k++)
			for (size_t at = 0; at <= strlen(texts[k]); at++)
				digest = (digest ^ (unsigned char)texts[k][at]) * 16777619U;
	}
	return digest;
}

const struct function *definition_find(const char *name)
{
	for (int i = 0; i < function_count; i++)
		if (strcmp(functions[i].name, name) == 0)
			return &functions[i];
	definition_stop("no such function", name);
}

int function_count_kind(const struct function *function, const char *kinds)
{
	int count = 0;

	for (int i = 0; i < function->count; i++)
		count += argument_is(&function->argument[i], kinds);
	return count;
}
