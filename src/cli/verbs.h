/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The commands of ctr-gpu: a name in the table of main.c, a function in a file of its own. */

#include <stdio.h>

#include "cli/globals.h"

struct verb {
	const char *name;
	const char *arguments;                                      /* as the usage line shows them; "" for none */
	const char *summary;                                        /* for the list in --help */
	int (*run)(struct globals *globals, int argc, char **argv); /* Return: the exit status */
};

/* Ends with an entry that has no name. */
extern const struct verb verbs[];

/** Return: NULL if there is none. */
const struct verb *verb_find(const struct verb *table, const char *name);

/** The parser of an argp for verb_run(); its first child takes a `struct globals *`. */
error_t verb_parse(int key, char *argument, struct argp_state *state);

/**
 * verb_run() - run the command that a line names
 * @argp:    of what stands before the command's name
 * @program: the words before the command, "ctr-gpu"
 *
 * Return: the exit status.
 */
int verb_run(const struct argp *argp, const struct verb *table, const char *program, struct globals *globals, int argc,
	     char **argv);

/* What configure writes down for unconfigure. */
#define CONFIGURED_DIRECTORY "/var/lib/ctr-gpu/configured"

/** Prints the program's version, and the commit it was built from where that is known. */
void version_print(FILE *file);

/** Prints what --help prints. */
int main_help(struct globals *globals);

int verb_cdi(struct globals *globals, int argc, char **argv);
int verb_configure(struct globals *globals, int argc, char **argv);
int verb_doctor(struct globals *globals, int argc, char **argv);
int verb_help(struct globals *globals, int argc, char **argv);
int verb_info(struct globals *globals, int argc, char **argv);
int verb_list(struct globals *globals, int argc, char **argv);
int verb_load(struct globals *globals, int argc, char **argv);
int verb_refresh(struct globals *globals, int argc, char **argv);
int verb_setup(struct globals *globals, int argc, char **argv);
int verb_unconfigure(struct globals *globals, int argc, char **argv);
int verb_vgpu(struct globals *globals, int argc, char **argv);
int verb_version(struct globals *globals, int argc, char **argv);
