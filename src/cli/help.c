/* SPDX-License-Identifier: Apache-2.0 */

/* ctr-gpu help [COMMAND...]: the same as --help, for those who type it that way. */

#include <stdio.h>

#include "cli/output.h"
#include "cli/suggest.h"
#include "cli/verbs.h"

int verb_help(struct global_options *globals, int argc, char **argv)
{
	const struct verb *verb;
	char name[64], option[] = "--help";
	char *arguments[] = {name, argc > 2 ? argv[2] : option, argc > 2 ? option : NULL, NULL};

	if (argc < 2 || argv[1][0] == '-')
		return main_help(globals);
	verb = verb_find(verbs, argv[1]);
	if (!verb) {
		suggest_verb(verbs, "ctr-gpu", argv[1]);
		return EXIT_STATUS_USAGE;
	}
	if (verb->run == verb_help)
		return main_help(globals);
	(void)snprintf(name, sizeof(name), "ctr-gpu %s", verb->name);
	/* Of a command that has commands, the second word is one. */
	return verb->run(globals, argc > 2 ? 3 : 2, arguments);
}
