/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * How the program ends, and what it leaves on standard output. A disk that is full or a reader that has gone is a
 * failure like any other: half a plan in a file must not look like a whole one.
 */

#include <ctr-gpu.h>
#include <stdbool.h>

#include "base/err.h"

/* ---- output ---- */

enum {
	EXIT_STATUS_FAILURE = 1,
	EXIT_STATUS_USAGE = 2, /* the command line is wrong; nothing was done */
};

/**
 * output_guard() - to be called first
 *
 * Descriptors 0 to 2 exist from then on, so that no file of ours ends up under standard output; and whatever way the
 * process exits, its status is 1 if something that it printed was lost.
 */
void output_guard(void);

/**
 * output_set_program() - print messages under another program's name
 * @name:     static
 * @class_of: Return: the first words of the message of a result, static; every failure then is EXIT_STATUS_FAILURE
 */
void output_set_program(const char *name, const char *(*class_of)(int r));

/**
 * Has a failure be an object for programs on standard output, too: {version, error: {id, text, advice}}. Of
 * output_print() and its like the id is null.
 */
void output_set_json(bool json);

/** Return: the program's name in messages. */
const char *output_name(void);

/**
 * Says a sentence on standard error, behind the program's name; `%m` is errno's text, and what to do about that errno
 * is said, too. Return: EXIT_STATUS_FAILURE.
 */
int output_print(const char *format, ...) __attribute__((format(printf, 1, 2)));

/** The same with advice; both as in err_set_advised(). */
#define output_print_advised(text, advice)                            \
	({                                                            \
		struct err advised_err;                               \
		(void)err_set_advised(&advised_err, 0, text, advice); \
		output_print_error(&advised_err);                     \
	})
int output_print_error(const struct err *err);

/** The same of what the command goes on after: it is on standard error alone. */
void output_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

/** Says so. Return: EXIT_STATUS_FAILURE. */
int output_no_memory(void);

/**
 * output_finish() - the end of what was printed
 * @r: what print_finish() or print_write_json() of standard output returned; errno is as they left it
 *
 * If something was lost, it is said when the process exits, with this reason. Return: the exit status.
 */
int output_finish(int r);

/**
 * output_error() - the message of a result, "ctr-gpu: [E_NO_ADAPTER] …", further lines indented
 *
 * With classes, "nvidia-container-cli: device error: … [E_UNKNOWN_DEVICE]".
 *
 * Return: the exit status that belongs to it.
 */
int output_error(const struct ctr_gpu_context *context, int r);

/* ---- paths ---- */

/** Return: where @path leads from the working directory as it is now, owned by the caller; NULL, with errno set. */
char *path_absolute(const char *path);

/** Return: where a program of ours is installed, beside this one, owned by the caller; NULL without memory. */
char *path_of_program(const char *name);
