/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/session.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/output.h"
#include "cli/verbs.h"

enum {
	/* Above the characters, so that argp makes no short option of it, and below its own keys. */
	LONG_ONLY = 0x1000,
	KEY_INVENTORY = 0x100,
	KEY_TIMEOUT,
};

/* clang-format off */
#define OPTIONS(flag) \
	{"config", 'c' | (flag), "FILE", 0, "Read FILE instead of /etc/ctr-gpu/config.json", 0}, \
	{"inventory", KEY_INVENTORY | (flag), "SOURCE", 0, \
	 "Who describes the adapters behind /dev/dxg: dxcore (the host's libdxcore), ioctl (the kernel), or auto", 0}, \
	{"root", 'r' | (flag), "DIR", 0, \
	 "Where a native driver is installed, such as /run/nvidia/driver (default: /)", 0}, \
	{"timeout", KEY_TIMEOUT | (flag), "SECONDS", 0, \
	 "How long a driver library may take to answer (default: 10)", 0}, \
	{"debug", 'd' | (flag), "FILE", OPTION_ARG_OPTIONAL, \
	 "Say what is looked at and decided, on standard error or in FILE", 0}

/* argp knows --help and -?. */
#define HELP {NULL, 'h', NULL, 0, "The same as --help", -1}
/* clang-format on */

static const struct argp_option options_before[] = {OPTIONS(0), HELP, {0}};
static const struct argp_option options_behind[] = {OPTIONS(LONG_ONLY), HELP, {0}};

static error_t global_options_take(struct global_options *globals, int key, char *argument,
				   const struct argp_state *state)
{
	static const char *const sources[] = {[CTR_GPU_INVENTORY_AUTO] = "auto",
					      [CTR_GPU_INVENTORY_DXCORE] = "dxcore",
					      [CTR_GPU_INVENTORY_IOCTL] = "ioctl"};
	char suggestion[SUGGESTION_SIZE], *end;
	double seconds;
	size_t source;

	switch (key) {
	case 'c':
		/* A script's variable that is not set. */
		if (!*argument)
			argp_error(state, "--config is a file; it is empty");
		globals->config = argument;
		return 0;
	case 'd':
		globals->debug = true;
		globals->debug_file = argument;
		return 0;
	case 'r':
		globals->driver_root = argument;
		return 0;
	case KEY_INVENTORY:
		for (source = 0; source < ARRAY_SIZE(sources) && strcmp(sources[source], argument) != 0; source++)
			;
		if (source == ARRAY_SIZE(sources))
			argp_error(state, "--inventory is auto, dxcore or ioctl, not '%s'%s", argument,
				   str_suggest(sources, ARRAY_SIZE(sources), argument, suggestion));
		globals->inventory = (enum ctr_gpu_inventory)source;
		globals->inventory_given = true;
		return 0;
	case KEY_TIMEOUT:
		seconds = strtod(argument, &end);
		if (end == argument || *end || !(seconds >= 0.001 && seconds <= (double)SETTINGS_LONGEST_S))
			argp_error(state, "--timeout is a number of seconds from 0.001 to %d, not '%s'",
				   SETTINGS_LONGEST_S, argument);
		globals->timeout_ms = (unsigned)(seconds * 1000);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* Only a parent's parser gives an argp child its input. Most parents have none for this one, so it is kept here. */
static struct global_options *behind_verb;

static error_t global_options_parse_before(int key, char *argument, struct argp_state *state)
{
	if (key == 'h')
		argp_state_help(state, stdout, ARGP_HELP_STD_HELP);
	return global_options_take(state->input, key, argument, state);
}

static error_t global_options_parse_behind(int key, char *argument, struct argp_state *state)
{
	if (key == ARGP_KEY_ARG)
		argp_error(state, "'%s' is one argument too many", argument);
	if (key == 'h')
		argp_state_help(state, stdout, ARGP_HELP_STD_HELP);
	if (!(key & LONG_ONLY))
		return ARGP_ERR_UNKNOWN;
	return global_options_take(state->input ? state->input : behind_verb, key & ~LONG_ONLY, argument, state);
}

const struct argp global_options_before_verb = {.options = options_before, .parser = global_options_parse_before};
const struct argp global_options_behind_verb = {.options = options_behind, .parser = global_options_parse_behind};
const struct argp_child global_options_children[] = {{&global_options_behind_verb, 0, "Options of every command:", 1},
						     {0}};

void global_options_parse_verb(struct global_options *globals, const struct argp *argp, int argc, char **argv,
			       void *input)
{
	error_t error;

	behind_verb = globals;
	suggest_option(argp, argv[0], argc, argv);
	error = argp_parse(argp, argc, argv, 0, NULL, input);
	if (error) {
		errno = error;
		exit(output_print("cannot read the command line: %m"));
	}
}
