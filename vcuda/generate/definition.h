/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* cuda.def and nvml.def, read: the functions of an API, and what is told of each. */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { ARGUMENTS_MAX = 16, FIELDS_MAX = 3, TEXT_MAX = 96, FUNCTIONS_MAX = 1024 };

struct argument {
	char kind[16];
	char field[FIELDS_MAX][TEXT_MAX];
};

struct function {
	char name[TEXT_MAX];
	const char *twins, *class, *driver;
	int version;
	const char *same;       /* the function that this is another name of; of a refused one, that it is found */
	struct argument enters; /* what the client's function begins with, if it is not of its own writing */
	int count;
	struct argument argument[ARGUMENTS_MAX];
};

extern struct function functions[FUNCTIONS_MAX];
extern int function_count;

/** Reads the definitions of NVML, or of CUDA, into functions. */
void definition_read(bool nvml);

/** Ends the program: a definition is wrong. */
_Noreturn void definition_stop(const char *what, const char *where);

/** Whether @text is a word of @list. */
bool definition_is(const char *text, const char *list);

/** The function of a name, which must be there. */
const struct function *definition_find(const char *name);

/** Whether it is of one of these kinds, which a space divides. */
bool argument_is(const struct argument *argument, const char *kinds);

/** The API's type of a handle, whose own type is in a field. */
const char *argument_handle_type(const struct argument *argument, int field);

const char *argument_name(const struct argument *argument);

/** Prints it as a parameter in C. */
void argument_print(FILE *to, const struct argument *a);

/** Whether it is of one of these classes, which a space divides. */
bool function_is(const struct function *function, const char *classes);

/** How many of its arguments are of one of these kinds. */
int function_count_kind(const struct function *function, const char *kinds);

bool function_is_nvml(const struct function *function);
bool function_has_twin(const struct function *function);
bool function_takes_stream(const struct function *function);

/** Whether a person wrote it, for the generated names with and without an ending to call. */
bool function_is_on(const struct function *function);

/** Whether a client asks the server for it. */
bool function_has_op(const struct function *function);

/** Its type in C, and a space if one is needed. */
const char *function_result(const struct function *function);

/** What the rest of a function is given of its beginning: nothing, the thread or the current context. */
const char *function_entered(const struct function *function);

/** Prints its head with another name and, for copies, with the stream that those without one use. */
void function_print_head(const char *prefix, const struct function *function, const char *suffix, bool stream);

/** Prints the head of its twin. */
void function_print_twin_head(const struct function *function);

/** Of all that client and server must have from the same definitions: FNV-1a. */
uint32_t function_digest(void);

/* What the generator can print, each a file. */

void api_print_ops(void);
void api_print_all(void);
void api_print_driver(void);
void api_print_refused(void);
void stub_print_all(void);
void entry_print_all(void);
void table_print_all(void);
void case_print_all(void);
void check_print_cuda(void);
void check_print_nvml(void);
