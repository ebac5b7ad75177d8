/* SPDX-License-Identifier: Apache-2.0 */

/* What engines give a hook: its command line, and the state on its standard input. */

#include "internal.h"

#include <errno.h>
#include <getopt.h>
#include <string.h>
#include <unistd.h>

void arguments_usage(FILE *file)
{
	(void)fputs("Usage: ctr-gpu-hook [--config=FILE] [--debug[=FILE]] [--device=NAME] [--dry-run] [--version] "
		    "createRuntime|prestart|poststop\n"
		    "Container engines run this; ctr-gpu-hook(8) says how to register it with yours.\n",
		    file);
}

static bool arguments_refuse(void)
{
	arguments_usage(stderr);
	return false;
}

/* The hook has left the directory that a relative path would start from. */
static bool arguments_take_path(const char *option, const char *path, const char **ret)
{
	if (path && path[0] != '/') {
		(void)fprintf(stderr, "ctr-gpu-hook: [E_BAD_ARGUMENT] --%s takes an absolute path, not '%s'\n", option,
			      path);
		return false;
	}
	*ret = path;
	return true;
}

static bool arguments_take_option(int key, struct arguments *ret)
{
	switch (key) {
	case 'c':
		return arguments_take_path("config", optarg, &ret->config);
	case 'd':
		ret->debug = true;
		return arguments_take_path("debug", optarg, &ret->debug_file);
	case 'D':
		ret->cdi = true;
		return true;
	case 'n':
		ret->dry_run = true;
		return true;
	case 'v':
		ret->version = true;
		return true;
	case 'h':
		ret->help = true;
		return true;
	default:
		return arguments_refuse();
	}
}

static bool arguments_take_stage(const char *name, enum stage *ret)
{
	static const struct {
		const char *name;
		enum stage stage;
	} stages[] = {
		{"prestart", STAGE_CREATE},
		{"createRuntime", STAGE_CREATE},
		{"poststart", STAGE_IGNORED},
		{"poststop", STAGE_CLEAN},
	};

	for (size_t i = 0; i < sizeof(stages) / sizeof(stages[0]); i++) {
		if (strcmp(stages[i].name, name) == 0) {
			*ret = stages[i].stage;
			return true;
		}
	}
	if (strcmp(name, "createContainer") != 0 && strcmp(name, "startContainer") != 0)
		(void)fprintf(stderr,
			      "ctr-gpu-hook: [E_BAD_ARGUMENT] unknown stage '%s'; the stages are createRuntime, "
			      "prestart and poststop\n",
			      name);
	else
		(void)fprintf(stderr,
			      "ctr-gpu-hook: [E_BAD_ARGUMENT] %s hooks run inside the container's namespaces, where "
			      "the host's\n"
			      "    driver cannot be reached safely. Register the hook for the stage createRuntime (or "
			      "prestart).\n",
			      name);
	return false;
}

bool arguments_parse(int argc, char **argv, struct arguments *ret)
{
	static const struct option options[] = {
		{"config", required_argument, NULL, 'c'},
		{"debug", optional_argument, NULL, 'd'},
		{"device", required_argument, NULL, 'D'},
		{"dry-run", no_argument, NULL, 'n'},
		{"version", no_argument, NULL, 'v'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	int key;

	*ret = (struct arguments){.all = (const char *const *)argv};
	while ((key = getopt_long_only(argc, argv, "", options, NULL)) != -1)
		if (!arguments_take_option(key, ret))
			return false;
	if (ret->version || ret->help)
		return true;
	if (optind != argc - 1)
		return arguments_refuse();
	return arguments_take_stage(argv[optind], &ret->stage);
}

bool arguments_is_called(const char *program, const char *name)
{
	const char *slash = program ? strrchr(program, '/') : NULL;

	return program && strcmp(slash ? slash + 1 : program, name) == 0;
}

/* A state is a few hundred bytes and the annotations, which Kubernetes limits to 256 KiB. */
enum { STATE_MAX = 1024 * 1024 };

int state_read(const char **ret_text, size_t *ret_size)
{
	/* Pages that a state does not reach are never touched, so its size costs nothing. */
	static char text[STATE_MAX + 1];
	size_t size = 0;
	ssize_t part;

	do {
		part = read(STDIN_FILENO, text + size, sizeof(text) - size);
		size += part > 0 ? (size_t)part : 0;
	} while (part > 0 || (part < 0 && errno == EINTR));
	if (part < 0)
		return -errno;
	if (size > STATE_MAX)
		return -EFBIG;
	*ret_text = text;
	*ret_size = size;
	return 0;
}
