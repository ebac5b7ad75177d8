/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The log that the administrator asks for in config.json, since an engine's hooks have arguments that nobody can edit;
 * and the last failure, for a machine where nothing else keeps it.
 */

#include <stdbool.h>
#include <stdio.h>

#include <ctr-gpu.h>

enum { TRACE_TIME_SIZE = 32 };

/** Sets the program's name in messages, a constant. Until then it is ctr-gpu-hook. */
void trace_begin(const char *program);

/** Return: that name. */
const char *trace_program(void);

/**
 * trace_open() - from now on, keep a log
 * @destination: of ctr_gpu_context_log(); NULL: none
 *
 * To be called before the mount namespace is changed. What cannot be opened is left alone: a container needs no log.
 */
void trace_open(const char *destination);

/* Where remarks of the library go besides the log. */
struct trace_echo {
	FILE *file; /* NULL: nowhere */
	bool warnings_only;
};

/** For ctr_gpu_context_set_log(). @user: struct trace_echo; NULL: the log alone. */
void trace_log(void *user, enum ctr_gpu_log_level level, const char *text);

/** Prints a line at once: what musl formats for standard error it writes in pieces, between which others may write. */
void trace_print_line(FILE *file, const char *format, ...) __attribute__((format(printf, 2, 3)));

/** The time as logs have it; empty where it is not known. */
void trace_write_time(char ret[TRACE_TIME_SIZE]);

/** One line, if there is a log. @kind: "debug", "warning" or "error". */
void trace_write(const char *kind, const char *text);

/** trace_open_last() - keep a failure that nobody would see in /run/ctr-gpu, where `ctr-gpu doctor` finds it */
void trace_open_last(void);

/** The failure, if trace_open_last() was called. */
void trace_keep_last(const char *text);
