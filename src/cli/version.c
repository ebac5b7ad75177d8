/* SPDX-License-Identifier: Apache-2.0 */

/* ctr-gpu version: the same as --version, for those who type it that way. */

#include <errno.h>
#include <stdio.h>

#include "cli/verbs.h"

static error_t parse(int key, char *argument, struct argp_state *state)
{
	if (key == ARGP_KEY_INIT) {
		state->child_inputs[0] = *(struct globals **)state->input;
		return 0;
	}
	if (key == ARGP_KEY_ARG)
		argp_error(state, "'%s' is one argument too many", argument);
	return ARGP_ERR_UNKNOWN;
}

int verb_version(struct globals *globals, int argc, char **argv)
{
	static const struct argp_child children[] = {{&globals_behind_verb, 0, "Options of every command:", 1}, {0}};
	static const struct argp argp = {.parser = parse, .children = children, .doc = "Print the version."};

	globals_parse_verb(&argp, argc, argv, &globals);
	(void)printf("ctr-gpu %s\n", ctr_gpu_version());
	return 0;
}
