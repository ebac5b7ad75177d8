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
