/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What each command begins with: its options, and the library's objects. */

#include <argp.h>
#include <ctr-gpu.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

#include "process/phase.h"

/* ---- global options ---- */

/*
 * The options that every command takes, before its name or behind it. Behind it only their long forms, because there
 * the short letters are the command's own, as users of nvidia-container-cli have them in their fingers: `-d` is --debug
 * before the command and --device behind it.
 */

struct global_options {
	const char *config;      /* NULL: the usual file */
	const char *driver_root; /* NULL: as configured */
	bool inventory_given;
	enum ctr_gpu_inventory inventory;
	unsigned timeout_ms; /* 0: as configured */
	bool debug;
	const char *debug_file; /* NULL: standard error */
};

/* Takes a `struct global_options *` as its input. */
extern const struct argp global_options_before_verb;

/*
 * Takes a `struct global_options *`, or NULL for what global_options_parse_verb() was given, and refuses arguments that
 * the command has left over.
 */
extern const struct argp global_options_behind_verb;

/* The children of a command that has no others. */
extern const struct argp_child global_options_children[];

/**
 * global_options_parse_verb() - parse the options of a command
 * @argp:  of the command; global_options_behind_verb is among its children
 * @input: of the command's parser
 *
 * What is wrong is said on standard error, and the process ends with status 2.
 */
void global_options_parse_verb(struct global_options *globals, const struct argp *argp, int argc, char **argv,
			       void *input);

/* ---- session ---- */

/* The library's objects for one command, made in their order and released together. */

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

/* ---- request ---- */

/*
 * The options that say what a container asks for. `list` and `configure` share them, so that the one shows what the
 * other would do.
 */

struct request_options {
	char *devices;       /* NULL: all */
	const char *domain;  /* of the vendor in whose words they are; NULL */
	char *imex_channels; /* NULL: none */
	char *capabilities;  /* NULL: the library's default */
	unsigned mig;        /* of enum ctr_gpu_mig */
	char **requirements;
	size_t requirement_count;
	char **environment; /* that says whether it is to be by vCUDA; ends with a NULL; NULL: nothing does */
};

void request_options_clear(struct request_options *options);

/** Appends to a list with commas. Return: 0 or ENOMEM. */
error_t request_list_append(char **list, const char *item);

/**
 * request_check_channels() - refuse a value of --imex-channel that has not the form of one
 * @words: it may be all or none, too
 *
 * The library ignores the list on a host without IMEX channels.
 */
void request_check_channels(const struct argp_state *state, const char *text, bool words);

/* Takes a `struct request_options *` as its input. */
extern const struct argp request_argp;

/* The children of a command that has these options, too: those of every command, and these. */
extern const struct argp_child request_children[];

/** Return: whether @text is the number of a process. */
bool request_parse_pid(const char *text, pid_t *ret);

/**
 * request_plan() - from the options to the plan: session->request, host and plan
 *
 * Return: 0, or the exit status after a message was printed.
 */
int request_plan(struct session *session, const struct request_options *options);

/** The same for a child that gives what is in the plan, up to its last phase. Return: as request_plan(). */
int request_prepare(struct session *session, const struct request_options *options);

/** Gives session->container what is in the plan, and prints that. Return: as the functions of the library. */
int request_give(struct session *session, bool no_cgroups, bool json);
