/* SPDX-License-Identifier: Apache-2.0 */

/*
 * ctr-gpu: the GPUs of this host, for its containers. The table of commands, the options before a command's name, and
 * the commands help and version. This file and hooks/main.c have the commit compiled in.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/print.h"
#include "base/str.h"
#include "cli/output.h"
#include "cli/verbs.h"

#define COMMANDS " COMMAND" /* the arguments of a command that has commands */

static const struct verb verbs[] = {
	{"info", "", "Show the GPUs of this host, and why one cannot be used", verb_info},
	{"list", "", "List what a container would get", verb_list},
	{"top", "", "Show which containers and processes use which GPUs now", verb_top},
	{"configure", " ROOTFS", "Give GPUs to a container that is being created", verb_configure},
	{"unconfigure", " ROOTFS", "Take back what configure did by hand", verb_unconfigure},
	{"attach", " CONTAINER", "Give GPUs to a container that runs", verb_attach},
	{"detach", " CONTAINER", "Take back what attach gave it", verb_detach},
	{"assign", " [GPU...]", "Say that one container at a time may have a GPU", verb_assign},
	{"cdi", COMMANDS, "Write, list and check CDI specs", verb_cdi},
	{"load", "", "Load NVIDIA's kernel modules, make their device nodes", verb_load},
	{"setup", " ENGINE", "Make a container engine ready", verb_setup},
	{"refresh", "", "Do what a boot or a change of GPUs makes necessary", verb_refresh},
	{"doctor", "", "Say whether a GPU container would work here, or why not", verb_doctor},
	{"vcuda", COMMANDS, "Look after containers that have GPUs by vCUDA", verb_vcuda},
	{"slurm", COMMANDS, "Tell Slurm of this node's GPUs", verb_slurm},
	{"vgpu", COMMANDS, NULL, verb_vcuda}, /* its name before there was a release */
	{"version", "", "Print the version", verb_version},
	{"help", " [COMMAND...]", "Show the options of a command", verb_help},
	{0},
};

static const struct argp_child children[] = {{&global_options_before_verb, 0, "Options of every command:", 1}, {0}};
static const struct argp main_argp = {
	.parser = verb_parse,
	.args_doc = "COMMAND [ARGUMENT...]",
	.children = children,
	.help_filter = verb_help_filter,
	.doc = "Show the GPUs of this host and give them to containers.\v"
	       "'ctr-gpu COMMAND --help' shows a command's own options; ctr-gpu(1) explains them all.",
};

static int main_help(struct global_options *globals)
{
	char name[] = "ctr-gpu", option[] = "--help";
	char *arguments[] = {name, option, NULL};

	return verb_run(&main_argp, verbs, name, globals, 2, arguments);
}

/* ctr-gpu help [COMMAND...]: the same as --help, for those who type it that way. */
int verb_help(struct global_options *globals, int argc, char **argv)
{
	const struct verb *verb;
	int words;
	char name[64], option[] = "--help";
	char *arguments[] = {name, argc > 2 ? argv[2] : option, argc > 2 ? option : NULL, NULL};

	if (argc < 2 || argv[1][0] == '-')
		return main_help(globals);
	verb = verb_find(verbs, argv[1]);
	if (!verb) {
		suggest_verb(verbs, "ctr-gpu", argv[1]);
		return EXIT_STATUS_USAGE;
	}
	/* Of a command that has commands, the second word is one. */
	words = streq(verb->arguments, COMMANDS) ? 3 : 2;
	if (argc > words && argv[words][0] != '-') {
		(void)output_print_advised(("help: '%.64s' is one argument too many", argv[words]),
					   ("ctr-gpu help lists the commands."));
		return EXIT_STATUS_USAGE;
	}
	if (verb->run == verb_help)
		return main_help(globals);
	(void)snprintf(name, sizeof(name), "ctr-gpu %s", verb->name);
	return verb->run(globals, argc > 2 ? 3 : 2, arguments);
}

static void main_print_version(FILE *file, struct argp_state *state)
{
	(void)state;
	print_safe(file, "ctr-gpu %s%s\n", ctr_gpu_version(), *CTR_GPU_COMMIT ? " (" CTR_GPU_COMMIT ")" : "");
}

/* The same as --version, for those who type it that way. */
int verb_version(struct global_options *globals, int argc, char **argv)
{
	static const struct argp argp = {.children = global_options_children, .doc = "Print the version."};

	global_options_parse_verb(globals, &argp, argc, argv, NULL);
	main_print_version(stdout, NULL);
	return 0;
}

int main(int argc, char **argv)
{
	struct global_options globals = {0};

	output_guard();
	if (strcmp(program_invocation_short_name, NVIDIA_CLI_NAME) == 0)
		return nvidia_main(argc, argv);
	argp_program_version_hook = main_print_version;
	argp_err_exit_status = EXIT_STATUS_USAGE;
	return verb_run(&main_argp, verbs, "ctr-gpu", &globals, argc, argv);
}
