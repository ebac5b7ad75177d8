/* SPDX-License-Identifier: Apache-2.0 */

/* ctr-gpu version: the same as --version, for those who type it that way. */

#include <stdio.h>

#include "cli/verbs.h"

int verb_version(struct globals *globals, int argc, char **argv)
{
	static const struct argp argp = {.children = globals_children, .doc = "Print the version."};

	globals_parse_verb(globals, &argp, argc, argv, NULL);
	(void)printf("ctr-gpu %s\n", ctr_gpu_version());
	return 0;
}
