/* SPDX-License-Identifier: Apache-2.0 */

/* The table of its commands, and the options before a command's name. */

#include "cli/nvidia/nvidia.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/print.h"
#include "cli/output.h"

enum { KEY_NO_CREATE_IMEX_CHANNELS = 0x100 };

static const struct argp_option options[] = {
	{"debug", 'd', "FILE", 0, "Say in FILE what is looked at and decided", 0},
	{"load-kmods", 'k', NULL, 0, "Load NVIDIA's kernel modules and make their device nodes, where they are missing",
	 0},
	{"root", 'r', "PATH", 0, "Where a native driver is installed, such as /run/nvidia/driver", 0},
	{NULL, 0, NULL, 0, "Accepted, and not needed:", 0},
	{"no-pivot", 'n', NULL, 0, "Nothing is run that pivot_root(2) would have to lock in", 0},
	{"user", 'u', "UID[:GID]", OPTION_ARG_OPTIONAL, "Driver libraries are loaded by a user of their own only", 0},
	{"ldcache", 'l', "FILE", 0, "The host's libraries are found without being told", 0},
	{"no-create-imex-channels", KEY_NO_CREATE_IMEX_CHANNELS, NULL, 0, "None are made", 0},
	{0},
};

static const struct {
	const char *name;
	int (*run)(struct nvidia *nvidia, int argc, char **argv);
} commands[] = {
	{"info", nvidia_info},
	{"list", nvidia_list},
	{"configure", nvidia_configure},
};

struct nvidia_line {
	struct nvidia *nvidia;
	int command; /* index in argv; 0: there is none */
};

static void nvidia_ignore(struct nvidia *nvidia, const char *option)
{
	size_t count = 0;

	while (nvidia->ignored[count] && strcmp(nvidia->ignored[count], option) != 0)
		count++;
	if (count < sizeof(nvidia->ignored) / sizeof(nvidia->ignored[0]) - 1)
		nvidia->ignored[count] = option;
}

static error_t nvidia_parse_option(int key, char *argument, struct argp_state *state)
{
	struct nvidia_line *line = state->input;
	struct nvidia *nvidia = line->nvidia;

	switch (key) {
	case 'd':
		nvidia->globals.debug = true;
		/* It may be a pipe of another user, which cannot be opened a second time. */
		nvidia->globals.debug_file = strcmp(argument, "/dev/stderr") == 0 ? NULL : argument;
		return 0;
	case 'k':
		nvidia->load_kmods = true;
		return 0;
	case 'r':
		nvidia->globals.driver_root = argument;
		return 0;
	case 'n':
		nvidia_ignore(nvidia, "--no-pivot");
		return 0;
	case 'u':
		nvidia_ignore(nvidia, "--user");
		return 0;
	case 'l':
		nvidia_ignore(nvidia, "--ldcache");
		return 0;
	case KEY_NO_CREATE_IMEX_CHANNELS:
		return 0;
	case ARGP_KEY_ARG:
		line->command = state->next - 1;
		state->next = state->argc; /* the rest is the command's */
		return 0;
	case ARGP_KEY_NO_ARGS:
		argp_usage(state);
		return EINVAL;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static void nvidia_print_version(FILE *file, struct argp_state *state)
{
	(void)state;
	print_safe(file, "cli-version: %s\n", ctr_gpu_version());
	print_safe(file, "lib-version: %s\n", ctr_gpu_version());
}

int nvidia_main(int argc, char **argv)
{
	static const struct argp argp = {
		.options = options,
		.parser = nvidia_parse_option,
		.args_doc = "COMMAND [ARGUMENT...]",
		.doc = "Give containers the GPUs of this host: ctr-gpu, for programs that call NVIDIA's.\v"
		       "Commands: info, list, configure. 'nvidia-container-cli COMMAND --help' shows a command's own "
		       "options; "
		       "nvidia-container-cli(1) explains them all.",
	};
	struct nvidia nvidia = {0};
	struct nvidia_line line = {.nvidia = &nvidia};
	char name[64], suggestion[SUGGESTION_SIZE];
	const char *names[ARRAY_SIZE(commands)];
	error_t error;

	output_set_program(NVIDIA_NAME, nvidia_class_of);
	argp_program_version_hook = nvidia_print_version;
	argp_err_exit_status = EXIT_STATUS_FAILURE;
	error = argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, &line);
	if (error)
		nvidia_input_error("cannot read the command line: %s", strerror(error));
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
		names[i] = commands[i].name;
		if (strcmp(argv[line.command], commands[i].name) != 0)
			continue;
		(void)snprintf(name, sizeof(name), NVIDIA_NAME " %s", commands[i].name);
		argv[line.command] = name;
		return commands[i].run(&nvidia, argc - line.command, argv + line.command);
	}
	nvidia_input_error("unknown command '%s'; the commands are info, list and configure%s", argv[line.command],
			   str_suggest(names, ARRAY_SIZE(names), argv[line.command], suggestion));
}
