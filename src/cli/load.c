/* SPDX-License-Identifier: Apache-2.0 */

/* ctr-gpu load: NVIDIA's kernel modules and their device nodes, on a host where no program has asked for them yet. */

#include <errno.h>

#include "cli/output.h"
#include "cli/session.h"
#include "cli/verbs.h"

enum {
	KEY_JSON = 0x200,
	KEY_DRY_RUN,
	KEY_MODESET,
	KEY_REPLACE,
	KEY_IMEX_CHANNEL,
};

enum { IMEX_OPTIONS_MAX = 64 };

struct load {
	const char *imex_channels[IMEX_OPTIONS_MAX];
	size_t imex_count;
	unsigned flags;
	bool dry_run;
	enum ctr_gpu_format format;
};

static const struct argp_option options[] = {
	{"dry-run", KEY_DRY_RUN, NULL, 0, "Show what is missing and change nothing", 0},
	{"modeset", KEY_MODESET, NULL, 0, "Load nvidia-modeset, too, which screens need", 0},
	{"imex-channel", KEY_IMEX_CHANNEL, "NUMBERS", 0, "Make the nodes of these IMEX channels, too; may be repeated", 0},
	{"replace", KEY_REPLACE, NULL, 0, "Put the right node in the place of a file or of a node with another number", 0},
	{"json", KEY_JSON, NULL, 0, "Print JSON", 0},
	{0},
};

static error_t add_imex_channels(struct load *load, const char *argument, const struct argp_state *state)
{
	if (load->imex_count == IMEX_OPTIONS_MAX)
		argp_error(state, "--imex-channel is given too often; it takes a list");
	load->imex_channels[load->imex_count++] = argument;
	return 0;
}

static error_t parse(int key, char *argument, struct argp_state *state)
{
	struct load *load = state->input;

	switch (key) {
	case KEY_DRY_RUN:
		load->dry_run = true;
		return 0;
	case KEY_MODESET:
		load->flags |= CTR_GPU_LOAD_MODESET;
		return 0;
	case KEY_REPLACE:
		load->flags |= CTR_GPU_LOAD_REPLACE;
		return 0;
	case KEY_IMEX_CHANNEL:
		return add_imex_channels(load, argument, state);
	case KEY_JSON:
		load->format = CTR_GPU_FORMAT_JSON;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static int run(struct session *session, const struct load *load)
{
	int result;

	result = ctr_gpu_load_new(session->context, load->flags, &session->load);
	for (size_t i = 0; i < load->imex_count && !result; i++)
		result = ctr_gpu_load_add_imex_channels(session->load, load->imex_channels[i]);
	if (!result)
		result = load->dry_run ? ctr_gpu_load_decide(session->load) : ctr_gpu_load_apply(session->load);
	if (!result)
		result = ctr_gpu_load_write(session->load, load->format, stdout);
	return session_check(session, result);
}

int verb_load(struct globals *globals, int argc, char **argv)
{
	static const struct argp argp = {
		.options = options, .parser = parse, .children = globals_children,
		.doc = "Load NVIDIA's kernel modules and make their device nodes, where this host lacks them.",
	};
	_cleanup_session_ struct session session = {0};
	struct load load = {.format = CTR_GPU_FORMAT_TEXT};
	int status;

	globals_parse_verb(globals, &argp, argc, argv, &load);
	status = session_open(&session, globals);
	return status ? status : run(&session, &load);
}
