/* SPDX-License-Identifier: Apache-2.0 */

/* ctr-gpu version: the same as --version, for those who type it that way. Only this file has the commit compiled in. */

#include <stdio.h>

#include "base/report.h"
#include "cli/verbs.h"

void version_print(FILE *file)
{
	report_print(file, "ctr-gpu %s%s\n", ctr_gpu_version(), *CTR_GPU_COMMIT ? " (" CTR_GPU_COMMIT ")" : "");
}

int verb_version(struct globals *globals, int argc, char **argv)
{
	static const struct argp argp = {.children = globals_children, .doc = "Print the version."};

	globals_parse_verb(globals, &argp, argc, argv, NULL);
	version_print(stdout);
	return 0;
}
