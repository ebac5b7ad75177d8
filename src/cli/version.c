/* SPDX-License-Identifier: Apache-2.0 */

/* ctr-gpu version: the same as --version, for those who type it that way. Only this file has the commit compiled in. */

#include <stdio.h>

#include "base/print.h"
#include "cli/verbs.h"

void version_print(FILE *file)
{
	print_safe(file, "ctr-gpu %s%s\n", ctr_gpu_version(), *CTR_GPU_COMMIT ? " (" CTR_GPU_COMMIT ")" : "");
}

int verb_version(struct global_options *globals, int argc, char **argv)
{
	static const struct argp argp = {.children = global_options_children, .doc = "Print the version."};

	global_options_parse_verb(globals, &argp, argc, argv, NULL);
	version_print(stdout);
	return 0;
}
