/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The commands of ctr-gpu: a name in the table of main.c, a function in a file of its own. */

#include <stdio.h>

#include "base/paths.h"
#include "cli/global_options.h"

struct verb {
	const char *name;
	const char *arguments; /* as the usage line shows them; "" for none */
	const char *summary;   /* for the list in --help */
	int (*run)(struct global_options *globals, int argc, char **argv); /* Return: the exit status */
};

/* Ends with an entry that has no name. */
extern const struct verb verbs[];

/** Return: NULL if there is none. */
const struct verb *verb_find(const struct verb *table, const char *name);

/** The parser of an argp for verb_run(); its first child takes a `struct global_options *`. */
error_t verb_parse(int key, char *argument, struct argp_state *state);

/**
 * verb_run() - run the command that a line names
 * @argp:    of what stands before the command's name
 * @program: the words before the command, "ctr-gpu"
 *
 * Return: the exit status.
 */
int verb_run(const struct argp *argp, const struct verb *table, const char *program, struct global_options *globals,
	     int argc, char **argv);

/* What configure writes down for unconfigure. */
#define CONFIGURED_DIRECTORY PATH_STATE "/configured"

/** Prints the program's version, and the commit it was built from where that is known. */
void version_print(FILE *file);

/** Prints what --help prints. */
int main_help(struct global_options *globals);

int verb_cdi(struct global_options *globals, int argc, char **argv);
int verb_configure(struct global_options *globals, int argc, char **argv);
int verb_doctor(struct global_options *globals, int argc, char **argv);
int verb_help(struct global_options *globals, int argc, char **argv);
int verb_info(struct global_options *globals, int argc, char **argv);
int verb_list(struct global_options *globals, int argc, char **argv);
int verb_load(struct global_options *globals, int argc, char **argv);
int verb_refresh(struct global_options *globals, int argc, char **argv);
int verb_setup(struct global_options *globals, int argc, char **argv);
int verb_unconfigure(struct global_options *globals, int argc, char **argv);
int verb_vgpu(struct global_options *globals, int argc, char **argv);
int verb_version(struct global_options *globals, int argc, char **argv);
