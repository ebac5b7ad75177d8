/* SPDX-License-Identifier: Apache-2.0 */

/* ctr-gpu unconfigure: take back what `ctr-gpu configure` did to a root filesystem by hand. */

#include <errno.h>

#include "cli/session.h"
#include "cli/verbs.h"

static error_t unconfigure_parse(int key, char *argument, struct argp_state *state)
{
	const char **rootfs = state->input;

	switch (key) {
	case ARGP_KEY_ARG:
		if (*rootfs)
			argp_error(state, "'%s' is one argument too many", argument);
		if (argument[0] != '/')
			argp_error(state, "ROOTFS must be an absolute path, not '%s'", argument);
		*rootfs = argument;
		return 0;
	case ARGP_KEY_NO_ARGS:
		argp_error(state, "ROOTFS is missing: the directory that 'ctr-gpu configure' was given");
		return EINVAL;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

int verb_unconfigure(struct global_options *globals, int argc, char **argv)
{
	static const struct argp argp = {
		.parser = unconfigure_parse,
		.args_doc = "ROOTFS",
		.children = global_options_children,
		.doc = "Take back what 'ctr-gpu configure ROOTFS' did: its mounts, and what it made and replaced.",
	};
	_cleanup_session_ struct session session = {0};
	const char *rootfs = NULL;
	int r;

	global_options_parse_verb(globals, &argp, argc, argv, &rootfs);
	r = session_open(&session, globals);
	return r ? r : session_check(&session, ctr_gpu_undo(session.context, rootfs, CONFIGURED_DIRECTORY));
}
