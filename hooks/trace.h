/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The log that the administrator asks for in config.json, since an engine's hooks have arguments that nobody can edit;
 * and the last failure, for a machine where nothing else keeps it.
 */

#include <stdbool.h>

/**
 * trace_open() - from now on, keep a log
 * @program:     whose log it is; a constant
 * @destination: of ctr_gpu_context_log(); NULL: none
 *
 * To be called before the mount namespace is changed. What cannot be opened is left alone: a container needs no log.
 */
void trace_open(const char *program, const char *destination);

/** One line, if there is a log. @kind: "debug", "warning" or "error". */
void trace_write(const char *kind, const char *text);

/** trace_open_last() - keep a failure that nobody would see in /run/ctr-gpu, where `ctr-gpu doctor` finds it */
void trace_open_last(void);

/** The failure, if trace_open_last() was called. */
void trace_keep_last(const char *text);
