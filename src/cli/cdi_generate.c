/* SPDX-License-Identifier: Apache-2.0 */

/* ctr-gpu cdi generate: a spec for each vendor of the host's adapters. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cdi.h"
#include "cli/output.h"
#include "cli/path.h"
#include "cli/session.h"

enum {
	KEY_OUTPUT = 0x200,
	KEY_KIND,
	KEY_NO_HOOKS,
	KEY_HOOK,
	KEY_CAPABILITIES,
	KEY_IMEX_CHANNEL,
};

struct generate {
	const char *output; /* NULL: the usual directory; "-": standard output */
	const char *kind;   /* NULL: one of each vendor */
	const char *hook, *capabilities, *imex_channels;
	bool no_hooks;
	char *found_hook; /* where ours is */
};

static const struct argp_option options[] = {
	{"output", KEY_OUTPUT, "PATH", 0,
	 "Write to this file or directory, or to standard output for - (/etc/cdi; /var/run/cdi where /etc is "
	 "read-only)",
	 0},
	{"kind", KEY_KIND, "VENDOR/CLASS", 0,
	 "Write a spec of this kind only: of nvidia.com, amd.com and the like that vendor's adapters, of any other "
	 "vendor all",
	 0},
	{"no-hooks", KEY_NO_HOOKS, NULL, 0, "Write a spec that needs no hook, and is right for today's driver only", 0},
	{"hook", KEY_HOOK, "PATH", 0, "Where engines find ctr-gpu-hook (beside this program)", 0},
	{"capabilities", KEY_CAPABILITIES, "LIST", 0,
	 "Parts of the driver whose device nodes, or without hooks files, are in the spec (utility,compute; without "
	 "hooks all)",
	 0},
	{"imex-channel", KEY_IMEX_CHANNEL, "NUMBERS", 0, "Give every device these IMEX channels, too", 0},
	{0},
};

static error_t cdi_generate_parse(int key, char *argument, struct argp_state *state)
{
	struct generate *generate = state->input;

	switch (key) {
	case KEY_OUTPUT:
		generate->output = argument;
		return 0;
	case KEY_KIND:
		generate->kind = argument;
		return 0;
	case KEY_NO_HOOKS:
		generate->no_hooks = true;
		return 0;
	case KEY_HOOK:
		generate->hook = argument;
		return 0;
	case KEY_CAPABILITIES:
		generate->capabilities = argument;
		return 0;
	case KEY_IMEX_CHANNEL:
		generate->imex_channels = argument;
		return 0;
	case ARGP_KEY_END:
		if (generate->no_hooks && generate->hook)
			argp_error(state, "--no-hooks and --hook exclude each other");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* The hook that belongs to this program, wherever the two are installed. */
static int cdi_generate_find_hook(struct generate *generate)
{
	char self[4096];
	ssize_t length;

	if (generate->no_hooks || generate->hook)
		return 0;
	length = readlink("/proc/self/exe", self, sizeof(self) - 1);
	self[length > 0 ? length : 0] = '\0';
	if (!strrchr(self, '/') ||
	    asprintf(&generate->found_hook, "%.*s/ctr-gpu-hook", (int)(strrchr(self, '/') - self), self) < 0)
		return output_complain("cannot find out where this program is; say where the hook is with --hook=PATH");
	generate->hook = generate->found_hook;
	if (access(generate->hook, X_OK) == 0)
		return 0;
	return output_complain(
		"the hook %s is missing\n    Name it with --hook=PATH, or write a spec without hooks with --no-hooks.",
		generate->hook);
}

static int cdi_generate_make_request(struct session *session, const struct generate *generate)
{
	const char *capabilities = generate->capabilities ? generate->capabilities : generate->no_hooks ? "all" : "";
	int r;

	r = ctr_gpu_request_new(session->context, &session->request);
	if (!r)
		r = ctr_gpu_request_set_devices(session->request, "all");
	if (!r)
		r = ctr_gpu_request_set_capabilities(session->request, capabilities);
	if (!r && generate->imex_channels)
		r = ctr_gpu_request_set_imex_channels(session->request, generate->imex_channels);
	return r;
}

/*
 * An absolute path of where to write; a slash at its end, which means a directory, stays.
 * Return: NULL without memory.
 */
static char *cdi_generate_find_output(const struct generate *generate)
{
	char *path;

	if (generate->output)
		return path_absolute(generate->output);
	return asprintf(&path, "%s/", cdi_directory()) < 0 ? NULL : path;
}

static int cdi_generate_write_spec(struct session *session, const struct generate *generate, const char *kind,
				   const char *output)
{
	char *path = NULL;
	int r;

	if (!output)
		return ctr_gpu_cdi_write(session->context, session->host, session->request, kind, generate->hook,
					 stdout);
	r = ctr_gpu_cdi_save(session->context, session->host, session->request, kind, generate->hook, output, &path);
	if (!r)
		(void)printf("%s: %s%s\n", kind, path,
			     !generate->output && cdi_is_volatile() ? ", until the next boot, since /etc is read-only"
								    : "");
	free(path);
	return r;
}

static int cdi_generate_write_each(struct session *session, const struct generate *generate, char *kinds,
				   const char *output)
{
	char *rest = kinds, *kind;
	int r = 0;

	while (!r && (kind = strsep(&rest, ",")))
		r = cdi_generate_write_spec(session, generate, kind, output);
	return r;
}

static bool cdi_generate_is_directory(const char *output)
{
	struct stat st;

	return output[strlen(output) - 1] == '/' || (stat(output, &st) == 0 && S_ISDIR(st.st_mode));
}

/* What a vendor's adapters have left behind goes with them. */
static int cdi_generate_remove_stale(struct session *session, const struct generate *generate, const char *output)
{
	char *removed = NULL;
	int r;

	if (generate->kind || !output || !cdi_generate_is_directory(output))
		return 0;
	r = ctr_gpu_cdi_remove_stale(session->context, session->host, output, &removed);
	for (char *end = removed; !r && (end = strchr(end, '\n'));)
		*end = ' ';
	if (!r && *removed)
		(void)printf("removed from %s, since these adapters are gone: %s\n", output, removed);
	free(removed);
	return r;
}

/* Return: NULL without memory. */
static char *cdi_generate_find_kinds(const struct session *session, const struct generate *generate)
{
	char *kinds;

	if (generate->kind)
		return strdup(generate->kind);
	if (ctr_gpu_cdi_kinds(session->host, &kinds) != 0)
		return NULL;
	if (*kinds)
		return kinds;
	/* Without a usable adapter, ctr_gpu_cdi_write() knows why there is none. */
	free(kinds);
	return strdup("nvidia.com/gpu");
}

static int cdi_generate_write_all(struct session *session, const struct generate *generate, const char *output)
{
	char *kinds = cdi_generate_find_kinds(session, generate);
	int r;

	if (!kinds)
		return output_complain("out of memory");
	if (strchr(kinds, ',') && (!output || !cdi_generate_is_directory(output)))
		r = output_complain("this host has adapters of several vendors, and a file holds one spec: %s\n"
				    "    Choose with --kind, or write to a directory.",
				    kinds);
	else
		r = session_check(session, cdi_generate_write_each(session, generate, kinds, output));
	free(kinds);
	return r;
}

static int cdi_generate_run(struct session *session, const struct generate *generate)
{
	char *output = NULL;
	int r, exit_status;

	if (!generate->output || strcmp(generate->output, "-") != 0) {
		output = cdi_generate_find_output(generate);
		if (!output)
			return output_complain("cannot find out where to write: %m");
	}
	r = cdi_generate_make_request(session, generate);
	if (!r)
		r = ctr_gpu_host_new(session->context, &session->host);
	exit_status = session_check(session, r);
	if (!r || r == CTR_GPU_E_NO_DEVICE)
		r = cdi_generate_remove_stale(session, generate, output);
	if (!exit_status)
		exit_status = session_check(session, r);
	if (!exit_status)
		exit_status = cdi_generate_write_all(session, generate, output);
	free(output);
	return exit_status;
}

int cdi_verb_generate(struct globals *globals, int argc, char **argv)
{
	static const struct argp argp = {
		.options = options,
		.parser = cdi_generate_parse,
		.children = globals_children,
		.doc = "Write CDI specs, which tell engines the GPUs of this host.",
	};
	_cleanup_session_ struct session session = {0};
	struct generate generate = {0};
	int r;

	globals_parse_verb(globals, &argp, argc, argv, &generate);
	r = session_open(&session, globals);
	if (!r)
		r = cdi_generate_find_hook(&generate);
	if (!r)
		r = cdi_generate_run(&session, &generate);
	free(generate.found_hook);
	return r;
}
