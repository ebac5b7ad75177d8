/* SPDX-License-Identifier: Apache-2.0 */

/* ctr-gpu load: NVIDIA's kernel modules and their device nodes, on a host where no program has asked for them yet. */

#include "cli/load.h"

#include <errno.h>

#include "cli/loaders.h"
#include "cli/output.h"
#include "cli/verbs.h"
#include "lib/context.h"

enum {
	KEY_JSON = 0x200,
	KEY_DRY_RUN,
	KEY_MODESET,
	KEY_REPLACE,
	KEY_IMEX_CHANNEL,
};

struct load_verb {
	struct load_options options;
	bool dry_run;
	enum ctr_gpu_format format;
};

static const struct argp_option load_options_table[] = {
	{"dry-run", KEY_DRY_RUN, NULL, 0, "Show what is missing and change nothing", 0},
	{"modeset", KEY_MODESET, NULL, 0, "Load nvidia-modeset, too; screens need it", 0},
	{"imex-channel", KEY_IMEX_CHANNEL, "NUMBERS", 0, "Make the nodes of these IMEX channels, too; may be repeated",
	 0},
	{"replace", KEY_REPLACE, NULL, 0, "Put the right node in the place of a file or of a node with another number",
	 0},
	{"json", KEY_JSON, NULL, 0, "Print JSON", 0},
	{0},
};

static error_t load_parse(int key, char *argument, struct argp_state *state)
{
	struct load_verb *load = state->input;

	switch (key) {
	case KEY_DRY_RUN:
		load->dry_run = true;
		return 0;
	case KEY_MODESET:
		load->options.modeset = true;
		return 0;
	case KEY_REPLACE:
		load->options.replace = true;
		return 0;
	case KEY_IMEX_CHANNEL:
		return strv_split(argument, ",", &load->options.imex_channels) < 0 ? ENOMEM : 0;
	case KEY_JSON:
		load->format = CTR_GPU_FORMAT_JSON;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

int load_run(const struct session *session, struct load_options options, bool dry_run, struct load *ret)
{
	struct ctr_gpu_context *context = session->context;

	options.driver_root = context->settings.driver_root;
	return loaders_run(&options, !dry_run, ret, &context->err);
}

int verb_load(struct global_options *globals, int argc, char **argv)
{
	static const struct argp argp = {
		.options = load_options_table,
		.parser = load_parse,
		.children = global_options_children,
		.doc = "Load NVIDIA's kernel modules and make their device nodes, where this host lacks them.",
	};
	_cleanup_session_ struct session session = {0};
	struct load_verb verb = {.format = CTR_GPU_FORMAT_TEXT};
	_cleanup_load_ struct load load = {0};
	int r;

	global_options_parse_verb(globals, &argp, argc, argv, &verb);
	r = session_open(&session, globals);
	if (r)
		return r;
	r = load_run(&session, verb.options, verb.dry_run, &load);
	if (r == 0)
		r = load_write(&load, verb.format, stdout);
	strv_clear(&verb.options.imex_channels);
	return session_check(&session, r);
}
