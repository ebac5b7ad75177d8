/* SPDX-License-Identifier: Apache-2.0 */

/* What the groups of questions share. Each question is asked in a process of its own, whose context may be lost by it. */

#ifndef VCUDA_REAL_QUESTION_H
#define VCUDA_REAL_QUESTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../../cuda.h"

/* The driver's functions by their symbols; what it lacks returns -1. */
extern struct driver {
#define QUESTION_MEMBER(name, symbol, version, parameters) CUresult(*symbol) parameters;
#define QUESTION_MEMBER_TWIN(name, symbol, version, suffix, parameters, arguments) CUresult(*symbol) parameters;
	CUDA_FUNCTIONS(QUESTION_MEMBER, QUESTION_MEMBER_TWIN)
#undef QUESTION_MEMBER
#undef QUESTION_MEMBER_TWIN
} cu;

extern char kernels_ptx[];

/* A line of TAP, or a remark. */
void answer(bool right, const char *format, ...) __attribute__((format(printf, 2, 3)));
void remark(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Loads the driver. */
void driver_open(void);

/* … with its first context, in which the caller is from then on. Ends the process where that cannot be. */
CUcontext driver_begin(void);
CUfunction driver_function(const char *text, const char *name);

/**
 * alone() - call a function in a process of its own
 * @ask:   gets @about, and fills in the @bytes behind @ret
 *
 * Return: 0, or the signal that ended it; -1 if it ended without an answer.
 */
int alone(void (*ask)(const void *about, void *ret), const void *about, void *ret, size_t bytes);

/* The groups. */
void ask_addresses(int argc, char **argv);
void ask_unified(int argc, char **argv);
void ask_taken(int argc, char **argv);
void ask_limits(int argc, char **argv);
void ask_contexts(int argc, char **argv);
void ask_images(int argc, char **argv);
void ask_linkers(int argc, char **argv);
void ask_waits(int argc, char **argv);
void ask_tables(int argc, char **argv);
void ask_sharing(int argc, char **argv);

#endif
