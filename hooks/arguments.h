/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The command line of the hook. Engines give the name of a stage. The options are those of
 * nvidia-container-runtime-hook, since the hook can take its place; so they have one dash or two.
 */

#include <stdbool.h>
#include <stdio.h>

enum staging {
	STAGE_CREATE,  /* prestart, createRuntime: the namespaces exist, nothing runs in them */
	STAGE_IGNORED, /* poststart, poststop: there is nothing to do */
};

struct arguments {
	const char *const *all; /* as they were given, NULL-terminated */
	enum staging stage;
	const char *config; /* NULL: the usual file */
	bool debug;
	const char *debug_file; /* NULL: standard error */
	bool cdi;               /* --device was given: a CDI spec's hook */
	bool dry_run;
	bool version, help;
};

/** Writes the usage. */
void arguments_usage(FILE *file);

/* Mistakes are explained on standard error. Return: whether there are none. */
bool arguments_parse(int argc, char **argv, struct arguments *ret);

/** Whether @program, an argv[0], is called @name, wherever it is. */
bool arguments_is_called(const char *program, const char *name);
