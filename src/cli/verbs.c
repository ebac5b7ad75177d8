/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/verbs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/output.h"
#include "cli/suggest.h"

enum { NAME_MAX_LENGTH = 64 };

/* What stands before the command's name, and where the command begins. */
struct line {
	struct global_options *globals;
	int verb; /* index in argv */
};

const struct verb *verb_find(const struct verb *table, const char *name)
{
	for (; table->name; table++)
		if (strcmp(table->name, name) == 0)
			return table;
	return NULL;
}

error_t verb_parse(int key, char *argument, struct argp_state *state)
{
	struct line *line = state->input;

	(void)argument;
	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = line->globals;
		return 0;
	case ARGP_KEY_ARG:
		line->verb = state->next - 1;
		state->next = state->argc; /* the rest is the command's */
		return 0;
	case ARGP_KEY_NO_ARGS:
		argp_state_help(state, stderr, ARGP_HELP_STD_HELP & ~(unsigned)ARGP_HELP_EXIT_OK);
		exit(EXIT_STATUS_USAGE);
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

int verb_run(const struct argp *argp, const struct verb *table, const char *program, struct global_options *globals,
	     int argc, char **argv)
{
	struct line line = {.globals = globals};
	char name[NAME_MAX_LENGTH];
	const struct verb *verb;
	error_t error;

	error = argp_parse(argp, argc, argv, ARGP_IN_ORDER, NULL, &line);
	if (error) {
		errno = error;
		return output_print("cannot read the command line: %m");
	}
	verb = verb_find(table, argv[line.verb]);
	if (!verb) {
		suggest_verb(table, program, argv[line.verb]);
		return EXIT_STATUS_USAGE;
	}
	/* argp and getopt name the program by its zeroth argument. */
	(void)snprintf(name, sizeof(name), "%s %s", program, verb->name);
	argv[line.verb] = name;
	return verb->run(globals, argc - line.verb, argv + line.verb);
}
