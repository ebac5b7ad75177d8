/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The library's objects for one command, made in their order and released together. */

#include <stdio.h>

#include <ctr-gpu.h>

#include "cli/global_options.h"
#include "process/phase.h"

struct session {
	bool debug;
	bool mute;    /* warnings are in the output already, for the person who reads it */
	bool lenient; /* a configuration file that cannot be read is reported elsewhere */
	FILE *log;    /* of --debug=FILE; NULL: standard error */
	struct ctr_gpu_context *context;
	struct ctr_gpu_request *request;
	struct ctr_gpu_host *host;
	struct ctr_gpu_plan *plan;
	struct ctr_gpu_container *container;
	struct ctr_gpu_cdi_report *cdi;
};

/* Begins as {0}. */
void session_close(struct session *session);
#define _cleanup_session_ __attribute__((cleanup(session_close)))

/**
 * session_open() - a context with the settings that the user wants, and the log
 * @session: zeroed
 *
 * Return: 0, or the exit status after a message was printed.
 */
int session_open(struct session *session, const struct global_options *globals);

/** Says in the log of --debug what a user of that may want to know. */
void session_log(const struct session *session, const char *format, ...) __attribute__((format(printf, 2, 3)));

/**
 * session_run_in_child() - do the rest of a command in a child, and end with its status
 * @work: ctr_gpu_run_in_child()
 */
_Noreturn void session_run_in_child(struct session *session, int (*work)(void *user), void *user);

/** phase_enter(), for a child. Return: 0, or the exit status after a message was printed. */
int session_enter(enum phase phase);

/** Prints the message of @r. Return: 0 if @r is 0, else the exit status. */
int session_check(const struct session *session, int r);
