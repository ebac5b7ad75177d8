/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The options that every command takes, before its name or behind it. Behind it only their long forms, because there
 * the short letters are the command's own, as users of nvidia-container-cli have them in their fingers: `-d` is --debug
 * before the command and --device behind it.
 */

#include <argp.h>
#include <stdbool.h>

#include <ctr-gpu.h>

struct globals {
	const char *config;      /* NULL: the usual file */
	const char *driver_root; /* NULL: as configured */
	bool inventory_given;
	enum ctr_gpu_inventory inventory;
	unsigned timeout_ms; /* 0: as configured */
	bool debug;
	const char *debug_file; /* NULL: standard error */
};

/* Takes a `struct globals *` as its input. */
extern const struct argp globals_before_verb;

/*
 * Takes a `struct globals *`, or NULL for what globals_parse_verb() was given, and refuses arguments that the command
 * has left over.
 */
extern const struct argp globals_behind_verb;

/* The children of a command that has no others. */
extern const struct argp_child globals_children[];

/**
 * globals_parse_verb() - parse the options of a command
 * @argp:  of the command; globals_behind_verb is among its children
 * @input: of the command's parser
 *
 * What is wrong is said on standard error, and the process ends with status 2.
 */
void globals_parse_verb(struct globals *globals, const struct argp *argp, int argc, char **argv, void *input);
