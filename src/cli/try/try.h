/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* `ctr-gpu doctor --try`: a real container, with a program of ours in an image of our own. Nothing of it remains. */

#include <stdbool.h>

#include "base/str.h"

/* ---- try ---- */

/**
 * try_find() - whether there is such a way
 * @text: "docker", "docker:cdi"
 */
bool try_find(const char *text);

/** As str_suggest(), of all ways. */
const char *try_suggest(const char *text, char ret[static SUGGESTION_SIZE]);

/** Tries it, and prints what arrived. Return: the exit status: 0 if the container had a GPU and a driver. */
int try_run(const char *text);

/* ---- client ---- */

/* Runs an engine's client, with a time limit. */

enum { CLIENT_OUTPUT_MAX = 64 * 1024 };

/* The result of a run. */
struct client_result {
	int status; /* exit status; 127: the program is missing; negative errno; -EINTR: a signal came; -ETIMEDOUT */
	char output[CLIENT_OUTPUT_MAX]; /* both streams, cut off where it does not fit */
};

/**
 * client_run() - run a program from the user's PATH to its end
 * @arguments:  with a NULL behind them
 * @input:      its standard input, rewound; -1: nothing
 * @timeout_s:  how long it may take
 * @patience_s: how long it may go on after a signal; 0: it is ended at once, and not begun after one
 *
 * It runs in a process group of its own, so that a terminal's ^C reaches us alone; client_guard() ends it then.
 */
void client_run(const char *const *arguments, int input, int timeout_s, int patience_s, struct client_result *ret);

/** From now on SIGINT, SIGTERM, SIGHUP and SIGQUIT end the client that runs, and not us; client_is_over() tells. */
void client_guard(void);

/** Whether such a signal came. Forgets it, so that what cleans up can run. */
bool client_is_over(void);
