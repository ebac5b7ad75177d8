/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The options that say what a container asks for. `list` and `configure` share them, so that the one shows what the
 * other would do.
 */

#include <argp.h>
#include <stdbool.h>
#include <sys/types.h>

#include "cli/session.h"

struct request_options {
	char *devices;       /* NULL: all */
	const char *domain;  /* of the vendor in whose words they are; NULL */
	char *imex_channels; /* NULL: none */
	char *capabilities;  /* NULL: the library's default */
	unsigned mig;        /* of enum ctr_gpu_mig */
	char **requirements;
	size_t requirement_count;
};

void request_options_clear(struct request_options *options);

/** Appends to a list with commas. Return: 0 or ENOMEM. */
error_t request_list_append(char **list, const char *item);

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
