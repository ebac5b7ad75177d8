/* SPDX-License-Identifier: Apache-2.0 */

/*
 * As much of a PTX compiler as the simulation needs: the .entry functions with their parameters, the variables of the module,
 * and whether the words in functions are instructions at all.
 */

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"

enum { TOKEN_MAX = 128, FUNCTIONS_MAX = 32 };

struct reader {
	const char *at;
	unsigned line;
	char token[TOKEN_MAX];
	CUmodule module;
	struct ptx_log *log;
	bool external;
	int target;
	char defined[FUNCTIONS_MAX][TOKEN_MAX], called[FUNCTIONS_MAX][TOKEN_MAX];
	unsigned defined_count, called_count;
};

void ptx_say(struct ptx_log *log, const char *format, ...)
{
	va_list arguments;
	int length;

	if (!log || !log->text || log->used >= log->size)
		return;
	va_start(arguments, format);
	length = vsnprintf(log->text + log->used, log->size - log->used, format, arguments);
	va_end(arguments);
	log->used += (size_t)length;
	if (log->used >= log->size)
		log->used = log->size - 1;
}

static bool ptx_is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || strchr("._%$", c) != NULL;
}

static void ptx_skip(struct reader *reader)
{
	for (;;) {
		const char *end = NULL;

		if (strncmp(reader->at, "//", 2) == 0)
			end = reader->at + strcspn(reader->at, "\n");
		else if (strncmp(reader->at, "/*", 2) == 0)
			end = strstr(reader->at, "*/") ? strstr(reader->at, "*/") + 2 : reader->at + strlen(reader->at);
		else if (*reader->at && strchr(" \t\r\n", *reader->at))
			end = reader->at + 1;
		if (!end)
			return;
		for (; reader->at < end; reader->at++)
			reader->line += *reader->at == '\n';
	}
}

/* The next word or sign; an empty one at the end. */
static const char *ptx_next(struct reader *reader)
{
	size_t length = 0;

	ptx_skip(reader);
	while (length + 1 < TOKEN_MAX && reader->at[length] && ptx_is_word(reader->at[length]))
		length++;
	if (!length && *reader->at)
		length = 1;
	memcpy(reader->token, reader->at, length);
	reader->token[length] = '\0';
	reader->at += length;
	return reader->token;
}

static CUresult ptx_error(struct reader *reader, const char *what)
{
	ptx_say(reader->log,
		"ptxas application ptx input, line %u; error   : %s '%s'\nptxas fatal   : Ptx assembly aborted due to errors\n",
		reader->line, what, reader->token);
	return CUDA_ERROR_INVALID_PTX;
}

static size_t ptx_size(const char *type)
{
	static const struct {
		const char *name;
		size_t size;
	} types[] = {{".u8", 1},  {".s8", 1},  {".b8", 1},  {".u16", 2}, {".s16", 2},
		     {".b16", 2}, {".f16", 2}, {".u32", 4}, {".s32", 4}, {".b32", 4},
		     {".f32", 4}, {".u64", 8}, {".s64", 8}, {".b64", 8}, {".f64", 8}};

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (strcmp(types[i].name, type) == 0)
			return types[i].size;
	return 0;
}

/* ".align 8 .b8 name[16]": what is declared. */
struct ptx_declared {
	size_t align, element, size;
	bool managed;
	char name[TOKEN_MAX];
};

/* Behind ".attribute". Return: whether it is ".managed". */
static bool ptx_attribute(struct reader *reader)
{
	bool managed = false;

	while (*reader->token && *ptx_next(reader) != ')')
		managed |= strcmp(reader->token, ".managed") == 0;
	return managed;
}

/* Up to the sign behind it, which is the reader's token then. */
static CUresult ptx_declared(struct reader *reader, struct ptx_declared *ret)
{
	*ret = (struct ptx_declared){0};
	for (ptx_next(reader); *reader->token && !strchr(",);=", *reader->token); ptx_next(reader)) {
		if (strcmp(reader->token, ".align") == 0)
			ret->align = strtoul(ptx_next(reader), NULL, 10);
		else if (strcmp(reader->token, ".attribute") == 0)
			ret->managed = ptx_attribute(reader);
		else if (ptx_size(reader->token))
			ret->element = ptx_size(reader->token);
		else if (strcmp(reader->token, "[") == 0)
			ret->size = ret->element * strtoul(ptx_next(reader), NULL, 10);
		else if (*reader->token != '.' && *reader->token != ']')
			(void)snprintf(ret->name, sizeof(ret->name), "%s", reader->token);
	}
	if (!ret->element || !*ret->name || !*reader->token)
		return ptx_error(reader, "Parsing error near");
	if (!ret->size)
		ret->size = ret->element;
	if (!ret->align)
		ret->align = ret->element;
	return CUDA_SUCCESS;
}

static CUresult ptx_parameters(struct reader *reader, CUfunction function)
{
	struct ptx_declared declared;
	CUresult r;

	if (strcmp(ptx_next(reader), "(") != 0)
		return CUDA_SUCCESS;
	ptx_skip(reader);
	if (*reader->at == ')')
		return ptx_next(reader), ptx_next(reader), CUDA_SUCCESS;
	do {
		struct parameter *parameter = &function->parameters[function->parameter_count];
		size_t offset;

		r = ptx_declared(reader, &declared);
		if (r)
			return r;
		offset = (function->arguments_size + declared.align - 1) & ~(declared.align - 1);
		function->arguments_size = offset + declared.size;
		if (function->arguments_size > SIM_ARGS_MAX || function->parameter_count == SIM_PARAMETERS_MAX - 1)
			return ptx_error(reader, "Formal parameter space overflowed near");
		*parameter = (struct parameter){.offset = offset, .size = declared.size};
		function->parameter_count++;
	} while (strcmp(reader->token, ",") == 0);
	(void)ptx_next(reader);
	return CUDA_SUCCESS;
}

static bool ptx_is_instruction(const char *word)
{
	static const char *const known[] = {
		"ld",     "st",    "mov",      "add",      "sub", "mul",  "mad",  "fma", "div",       "rem",
		"setp",   "selp",  "cvt",      "cvta",     "bra", "ret",  "exit", "bar", "trap",      "call",
		"and",    "or",    "xor",      "not",      "shl", "shr",  "min",  "max", "atom",      "red",
		"membar", "fence", "shfl",     "vote",     "neg", "abs",  "sqrt", "rcp", "nanosleep", "barrier",
		"popc",   "clz",   "prefetch", "isspacep", "tex", "sust", "suld"};
	size_t length = strcspn(word, ".");

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (strlen(known[i]) == length && strncmp(known[i], word, length) == 0)
			return true;
	return false;
}

static void ptx_called(struct reader *reader)
{
	/* call.uni (ret), name, (arguments): the first word that is no parameter's. */
	for (ptx_next(reader); *reader->token && *reader->token != ';'; ptx_next(reader)) {
		if (*reader->token == '(') {
			while (*reader->token && *reader->token != ')')
				ptx_next(reader);
			continue;
		}
		if (ptx_is_word(*reader->token) && reader->called_count < FUNCTIONS_MAX)
			memcpy(reader->called[reader->called_count++], reader->token, TOKEN_MAX);
		if (ptx_is_word(*reader->token))
			break;
	}
}

static CUresult ptx_statement(struct reader *reader, CUfunction function)
{
	struct ptx_declared declared;

	while (*reader->token == '@') {
		if (strcmp(ptx_next(reader), "!") == 0)
			(void)ptx_next(reader);
		(void)ptx_next(reader);
	}
	if (strcmp(reader->token, ".shared") == 0 || strcmp(reader->token, ".local") == 0) {
		const bool local = reader->token[1] == 'l';

		if (ptx_declared(reader, &declared))
			return CUDA_ERROR_INVALID_PTX;
		if (function && local)
			function->declared_local += (unsigned)declared.size;
		else if (function)
			function->declared_shared += (unsigned)declared.size;
		return CUDA_SUCCESS;
	}
	ptx_skip(reader);
	if (*reader->at == ':')
		return ptx_next(reader), CUDA_SUCCESS;
	if (*reader->token != '.' && !ptx_is_instruction(reader->token))
		return ptx_error(reader, "Not a name of any known instruction:");
	if (strncmp(reader->token, "call", 4) == 0)
		ptx_called(reader);
	while (*reader->token && *reader->token != ';')
		ptx_next(reader);
	return *reader->token ? CUDA_SUCCESS : ptx_error(reader, "Parsing error near");
}

static CUresult ptx_body(struct reader *reader, CUfunction function)
{
	unsigned depth = 1;
	CUresult r;

	while (depth) {
		(void)ptx_next(reader);
		if (*reader->token == '{')
			depth++;
		else if (*reader->token == '}')
			depth--;
		else if (!*reader->token)
			return ptx_error(reader, "Parsing error near");
		else if ((r = ptx_statement(reader, function)))
			return r;
	}
	return CUDA_SUCCESS;
}

/* .maxntid and its like, up to the body. */
static void ptx_directives(struct reader *reader, CUfunction function)
{
	unsigned product;

	while (*reader->token && *reader->token != '{' && *reader->token != ';') {
		if (strcmp(reader->token, ".maxntid") == 0 || strcmp(reader->token, ".reqntid") == 0) {
			product = (unsigned)strtoul(ptx_next(reader), NULL, 10);
			while (strcmp(ptx_next(reader), ",") == 0)
				product *= (unsigned)strtoul(ptx_next(reader), NULL, 10);
			function->max_threads = product;
			continue;
		}
		(void)ptx_next(reader);
	}
}

static CUresult ptx_entry(struct reader *reader)
{
	CUmodule module = reader->module;
	CUfunction function;
	CUresult r;

	if (module->function_count == sizeof(module->functions) / sizeof(module->functions[0]))
		return ptx_error(reader, "Too many functions at");
	function = object_new(OBJECT_FUNCTION, sizeof(*function), module->object.context);
	module->functions[module->function_count++] = function;
	function->module = module;
	function->max_threads = 1024;
	function->registers = 16;
	function->max_dynamic_shared = 49152;
	function->carveout = -1;
	function->target = reader->target;
	(void)snprintf(function->name, sizeof(function->name), "%.127s", ptx_next(reader));
	function->run = kernel_find(function->name);
	r = ptx_parameters(reader, function);
	if (r)
		return r;
	ptx_directives(reader, function);
	if (*reader->token != '{')
		return ptx_error(reader, "Parsing error near");
	r = ptx_body(reader, function);
	function->max_dynamic_shared -= (int)function->declared_shared;
	return r;
}

/* Its parameters are of no concern. */
static CUresult ptx_function(struct reader *reader)
{
	char name[TOKEN_MAX];

	if (strcmp(ptx_next(reader), "(") == 0) {
		while (*reader->token && *reader->token != ')')
			ptx_next(reader);
		ptx_next(reader);
	}
	memcpy(name, reader->token, TOKEN_MAX);
	while (*reader->token && *reader->token != '{' && *reader->token != ';')
		ptx_next(reader);
	if (*reader->token == ';')
		return CUDA_SUCCESS;
	if (*reader->token != '{')
		return ptx_error(reader, "Parsing error near");
	if (reader->defined_count < FUNCTIONS_MAX)
		memcpy(reader->defined[reader->defined_count++], name, TOKEN_MAX);
	return ptx_body(reader, NULL);
}

static void ptx_initial(struct reader *reader, struct global *global, size_t element)
{
	size_t offset = 0;

	while (*reader->token && *reader->token != ';') {
		unsigned long long value;
		const char *word = ptx_next(reader);

		if (*word < '0' || *word > '9' || offset + element > sizeof(global->initial))
			continue;
		value = strtoull(word, NULL, 0);
		memcpy(global->initial + offset, &value, element);
		offset += element;
	}
}

static CUresult ptx_variable(struct reader *reader)
{
	CUmodule module = reader->module;
	struct ptx_declared declared;
	struct global *global = &module->globals[module->global_count];
	CUresult r = ptx_declared(reader, &declared);

	if (r)
		return r;
	if (!reader->external && module->global_count < sizeof(module->globals) / sizeof(module->globals[0])) {
		(void)snprintf(global->name, sizeof(global->name), "%.127s", declared.name);
		global->size = declared.size;
		global->managed = declared.managed;
		module->global_count++;
		ptx_initial(reader, global, declared.element);
	}
	while (*reader->token && *reader->token != ';')
		ptx_next(reader);
	return CUDA_SUCCESS;
}

/* ".global .texref name;", or ".surfref". */
static CUresult ptx_reference(struct reader *reader)
{
	const bool surface = strcmp(ptx_next(reader), ".surfref") == 0;

	(void)reference_new(reader->module->object.context, reader->module, ptx_next(reader), surface);
	return strcmp(ptx_next(reader), ";") == 0 ? CUDA_SUCCESS : ptx_error(reader, "Parsing error near");
}

static bool ptx_refers(struct reader *reader)
{
	ptx_skip(reader);
	return strncmp(reader->at, ".texref", 7) == 0 || strncmp(reader->at, ".surfref", 8) == 0;
}

static CUresult ptx_unresolved(const struct reader *reader)
{
	for (unsigned i = 0; i < reader->called_count; i++) {
		/* The driver's own. */
		bool found =
			strcmp(reader->called[i], "vprintf") == 0 || strcmp(reader->called[i], "__assertfail") == 0;

		for (unsigned j = 0; j < reader->defined_count; j++)
			found |= strcmp(reader->called[i], reader->defined[j]) == 0;
		if (found)
			continue;
		ptx_say(reader->log, "ptxas fatal   : Unresolved extern function '%s'\n", reader->called[i]);
		return PTX_UNRESOLVED;
	}
	return CUDA_SUCCESS;
}

/* sm_50, as the attribute for the version of the PTX has it: 50. */
static CUresult ptx_header(struct reader *reader)
{
	if (strncmp(ptx_next(reader), "sm_", 3) == 0)
		reader->target = (int)strtol(reader->token + 3, NULL, 10);
	return CUDA_SUCCESS;
}

static CUresult ptx_top(struct reader *reader)
{
	if (strcmp(reader->token, ".entry") == 0)
		return ptx_entry(reader);
	if (strcmp(reader->token, ".func") == 0)
		return ptx_function(reader);
	if (strcmp(reader->token, ".global") == 0 || strcmp(reader->token, ".const") == 0)
		return ptx_refers(reader) ? ptx_reference(reader) : ptx_variable(reader);
	if (strcmp(reader->token, ".shared") == 0) {
		while (*reader->token && *reader->token != ';')
			ptx_next(reader);
		return CUDA_SUCCESS;
	}
	if (strcmp(reader->token, ".visible") == 0 || strcmp(reader->token, ".weak") == 0)
		return CUDA_SUCCESS;
	if (strcmp(reader->token, ".extern") == 0) {
		reader->external = true;
		return CUDA_SUCCESS;
	}
	if (strcmp(reader->token, ".version") == 0 || strcmp(reader->token, ".target") == 0 ||
	    strcmp(reader->token, ".address_size") == 0)
		return ptx_header(reader);
	return ptx_error(reader, "Parsing error near");
}

CUresult ptx_parse(const char *text, CUmodule module, struct ptx_log *log)
{
	struct reader *reader = calloc(1, sizeof(*reader));
	CUresult r = CUDA_SUCCESS;

	if (!reader)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*reader = (struct reader){.at = text, .line = 1, .module = module, .log = log};
	if (strcmp(ptx_next(reader), ".version") != 0)
		r = CUDA_ERROR_INVALID_IMAGE;
	while (!r && *reader->token) {
		bool external = reader->external;

		r = ptx_top(reader);
		if (external)
			reader->external = false;
		(void)ptx_next(reader);
	}
	if (!r)
		r = ptx_unresolved(reader);
	free(reader);
	return r;
}
