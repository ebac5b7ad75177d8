/* SPDX-License-Identifier: Apache-2.0 */

/* ctr-gpu list: what a container would get, one path of the host per line, or the whole plan. */

#include "cli/doctor/run.h"
#include "cli/output.h"
#include "cli/request.h"
#include "cli/verbs.h"

enum { KEY_JSON = 0x200, KEY_DRY_RUN };

struct list {
	struct request_options request;
	enum ctr_gpu_format format;
};

static const struct argp_option options[] = {
	{"dry-run", KEY_DRY_RUN, NULL, 0, "Print the whole plan, with the reason of every entry", 0},
	{"json", KEY_JSON, NULL, 0, "Print the whole plan as JSON, with the reason of every entry", 0},
	{0},
};

static error_t list_parse(int key, char *argument, struct argp_state *state)
{
	struct list *list = state->input;

	(void)argument;
	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[1] = &list->request;
		return 0;
	case KEY_DRY_RUN:
		if (list->format == CTR_GPU_FORMAT_PATHS)
			list->format = CTR_GPU_FORMAT_TEXT;
		return 0;
	case KEY_JSON:
		list->format = CTR_GPU_FORMAT_JSON;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

int verb_list(struct global_options *globals, int argc, char **argv)
{
	static const struct argp argp = {
		.options = options,
		.parser = list_parse,
		.children = request_children,
		.doc = "List the devices, files and directories of this host for a container with all GPUs, or "
		       "with those that --device names.",
	};
	_cleanup_session_ struct session session = {0};
	struct list list = {.format = CTR_GPU_FORMAT_PATHS};
	int r;

	global_options_parse_verb(globals, &argp, argc, argv, &list);
	output_set_json(list.format == CTR_GPU_FORMAT_JSON);
	r = session_open(&session, globals);
	if (!r)
		r = request_plan(&session, &list.request);
	if (!r)
		r = session_check(&session, ctr_gpu_plan_write(session.plan, list.format, stdout));
	if (!r && doctor_warn_of_host(session.context, session.host, session.plan))
		r = EXIT_STATUS_FAILURE;
	request_options_clear(&list.request);
	return r;
}
