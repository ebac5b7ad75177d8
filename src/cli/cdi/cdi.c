/* SPDX-License-Identifier: Apache-2.0 */

/* ctr-gpu cdi: the table of its commands. */

#include "cli/cdi/cdi.h"

#include "base/paths.h"
#include "cli/verbs.h"
#include <errno.h>
#include <sys/statvfs.h>

const char *const cdi_directories[] = {PATH_CDI, PATH_CDI_RUN, NULL};

bool cdi_is_volatile(void)
{
	struct statvfs fs;

	/* What /etc/cdi is on, or would be. */
	return (statvfs(cdi_directories[0], &fs) == 0 || (errno == ENOENT && statvfs("/etc", &fs) == 0)) &&
	       (fs.f_flag & ST_RDONLY);
}

const char *cdi_directory(void)
{
	return cdi_directories[cdi_is_volatile()];
}

static const struct verb commands[] = {
	{"generate", "", "Write specs of the GPUs of this host", cdi_verb_generate},
	{"list", "", "List specs, and which device comes from which", cdi_report_verb_list},
	{"check", " [FILE...]", "Find out whether specs would work", cdi_report_verb_check},
	{0},
};

int verb_cdi(struct global_options *globals, int argc, char **argv)
{
	static const struct argp argp = {
		.parser = verb_parse,
		.args_doc = "generate|list|check [ARGUMENT...]",
		.children = global_options_children,
		.doc = "Write, list and check CDI specs, which tell engines the GPUs of this host.\v"
		       "'ctr-gpu cdi COMMAND --help' shows a command's own options; ctr-gpu-cdi(1) explains them all.",
	};

	return verb_run(&argp, commands, "ctr-gpu cdi", globals, argc, argv);
}
