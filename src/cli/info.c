/* SPDX-License-Identifier: Apache-2.0 */

/* ctr-gpu info: the adapters of this host, and why one cannot be used. */

#include "cli/doctor/run.h"
#include "cli/output.h"
#include "cli/session.h"
#include "cli/verbs.h"

enum {
	KEY_JSON = 0x100,
	KEY_CSV,
};

static const struct argp_option options[] = {
	{"json", KEY_JSON, NULL, 0, "Print JSON", 0},
	{"csv", KEY_CSV, NULL, 0, "Print CSV", 0},
	{0},
};

static error_t info_parse(int key, char *argument, struct argp_state *state)
{
	enum ctr_gpu_format *format = state->input;

	(void)argument;
	switch (key) {
	case KEY_JSON:
	case KEY_CSV:
		if (*format != CTR_GPU_FORMAT_TEXT)
			argp_error(state, "--json and --csv exclude each other");
		*format = key == KEY_JSON ? CTR_GPU_FORMAT_JSON : CTR_GPU_FORMAT_CSV;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* Why each is not, has been printed. */
static bool info_has_usable(const struct ctr_gpu_host *host)
{
	struct ctr_gpu_adapter adapter;

	for (size_t i = 0; ctr_gpu_host_adapter(host, i, &adapter) == 0; i++)
		if (!adapter.unusable)
			return true;
	return false;
}

int verb_info(struct global_options *globals, int argc, char **argv)
{
	static const struct argp argp = {
		.options = options,
		.parser = info_parse,
		.children = global_options_children,
		.doc = "Show the GPUs of this host, and why one cannot be used.",
	};
	_cleanup_session_ struct session session = {0};
	enum ctr_gpu_format format = CTR_GPU_FORMAT_TEXT;
	int r, exit_status;

	global_options_parse_verb(globals, &argp, argc, argv, &format);
	output_set_json(format == CTR_GPU_FORMAT_JSON);
	session.mute = format != CTR_GPU_FORMAT_CSV; /* the other two have notes */
	exit_status = session_open(&session, globals);
	if (exit_status)
		return exit_status;
	r = ctr_gpu_host_new(session.context, &session.host);
	if (!r)
		r = ctr_gpu_host_write(session.host, format, stdout);
	if (r)
		return session_check(&session, r);
	return doctor_warn_of_host(session.context, session.host, NULL) || !info_has_usable(session.host)
		       ? EXIT_STATUS_FAILURE
		       : 0;
}
