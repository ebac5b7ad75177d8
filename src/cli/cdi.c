/* SPDX-License-Identifier: Apache-2.0 */

/* ctr-gpu cdi: the table of its commands. */

#include "cli/cdi.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/output.h"
#include "cli/verbs.h"

const char *const cdi_directories[] = {"/etc/cdi", "/var/run/cdi", NULL};

static const struct verb commands[] = {
	{"generate", "", "Write specs of the GPUs of this host", cdi_generate},
	{"list", "", "List specs, and which device comes from which", cdi_list},
	{"check", " [FILE...]", "Find out whether specs would work", cdi_check},
	{0},
};

struct line {
	struct globals *globals;
	int command; /* index in argv; 0: there is none */
};

static error_t parse(int key, char *argument, struct argp_state *state)
{
	struct line *line = state->input;

	(void)argument;
	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = line->globals;
		return 0;
	case ARGP_KEY_ARG:
		line->command = state->next - 1;
		state->next = state->argc; /* the rest is the command's */
		return 0;
	case ARGP_KEY_NO_ARGS:
		argp_error(state, "a command is missing: generate, list or check");
		return EINVAL;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

int verb_cdi(struct globals *globals, int argc, char **argv)
{
	static const struct argp_child children[] = {{&globals_behind_verb, 0, "Options of every command:", 1}, {0}};
	static const struct argp argp = {
		.parser = parse, .args_doc = "generate|list|check [ARGUMENT...]", .children = children,
		.doc = "Write, list and check CDI specs, by which engines know the GPUs of this host.\v"
		       "'ctr-gpu cdi COMMAND --help' shows a command's own options; ctr-gpu-cdi(1) explains them all.",
	};
	struct line line = {.globals = globals};
	char name[48];
	error_t error;

	error = argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, &line);
	if (error) {
		errno = error;
		return output_complain("cannot read the command line: %m");
	}
	for (const struct verb *command = commands; command->name; command++) {
		if (strcmp(command->name, argv[line.command]) != 0)
			continue;
		(void)snprintf(name, sizeof(name), "ctr-gpu cdi %s", command->name);
		argv[line.command] = name;
		return command->run(globals, argc - line.command, argv + line.command);
	}
	(void)fprintf(stderr, "ctr-gpu: there is no command 'cdi %s'; there are generate, list and check\n", argv[line.command]);
	return EXIT_STATUS_USAGE;
}
