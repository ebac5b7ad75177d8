/* SPDX-License-Identifier: Apache-2.0 */

/* ctr-gpu info and ctr-gpu list: the adapters of this host, and what a container would get. */

#include "cli/doctor/run.h"
#include "cli/output.h"
#include "cli/session.h"
#include "cli/verbs.h"
#include "lib/context.h"

/* ---- info ---- */

enum {
	KEY_JSON = 0x100,
	KEY_CSV,
	KEY_CONTAINERS,
};

struct info {
	enum ctr_gpu_format format;
	bool containers;
};

static const struct argp_option info_options[] = {
	{"json", KEY_JSON, NULL, 0, "Print JSON", 0},
	{"csv", KEY_CSV, NULL, 0, "Print CSV", 0},
	{"containers", KEY_CONTAINERS, NULL, 0, "Show the containers that run and have GPUs", 0},
	{0},
};

static error_t info_parse(int key, char *argument, struct argp_state *state)
{
	struct info *info = state->input;

	(void)argument;
	switch (key) {
	case KEY_JSON:
	case KEY_CSV:
		if (info->format != CTR_GPU_FORMAT_TEXT)
			argp_error(state, "--json and --csv exclude each other");
		info->format = key == KEY_JSON ? CTR_GPU_FORMAT_JSON : CTR_GPU_FORMAT_CSV;
		return 0;
	case KEY_CONTAINERS:
		info->containers = true;
		return 0;
	case ARGP_KEY_END:
		if (info->containers && info->format == CTR_GPU_FORMAT_CSV)
			argp_error(state, "--containers and --csv exclude each other");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* Whether a container would get all of them. Why it would not has been printed, as a reason or a note. */
static bool info_has_plan(struct session *session)
{
	int r = ctr_gpu_request_new(session->context, &session->request);

	if (r == 0)
		r = ctr_gpu_request_set_devices(session->request, "all");
	return r == 0 && ctr_gpu_plan_new(session->context, session->request, session->host, &session->plan) == 0;
}

static int info_write_containers(struct session *session, enum ctr_gpu_format format)
{
	json_t *list = NULL;
	int r = containers_list(session->context, session->host, false, &list);

	r = r < 0 ? err_set(&session->context->err, r, "cannot look at the containers that run: %m")
		  : containers_write(list, format, stdout);
	json_decref(list);
	return session_check(session, r);
}

int verb_info(struct global_options *globals, int argc, char **argv)
{
	static const struct argp argp = {
		.options = info_options,
		.parser = info_parse,
		.children = global_options_children,
		.doc = "Show the GPUs of this host, and why one cannot be used.",
	};
	_cleanup_session_ struct session session = {0};
	struct info info = {.format = CTR_GPU_FORMAT_TEXT};
	int r, exit_status;
	bool has_plan;

	global_options_parse_verb(globals, &argp, argc, argv, &info);
	output_set_json(info.format == CTR_GPU_FORMAT_JSON);
	session.mute = info.format != CTR_GPU_FORMAT_CSV; /* the other two have notes */
	exit_status = session_open(&session, globals);
	if (exit_status)
		return exit_status;
	r = ctr_gpu_host_new(session.context, &session.host);
	if (!r && info.containers)
		return info_write_containers(&session, info.format);
	if (!r)
		r = ctr_gpu_host_write(session.host, info.format, stdout);
	if (r)
		return session_check(&session, r);
	has_plan = info_has_plan(&session);
	return doctor_warn_of_host(session.context, session.host, session.plan, info.format != CTR_GPU_FORMAT_CSV) ||
			       !has_plan
		       ? EXIT_STATUS_FAILURE
		       : 0;
}

/* ---- list ---- */

/* ctr-gpu list: what a container would get, one path of the host per line, or the whole plan. */

enum { KEY_LIST_JSON = 0x200, KEY_LIST_DRY_RUN };

struct list {
	struct request_options request;
	enum ctr_gpu_format format;
};

static const struct argp_option list_options[] = {
	{"dry-run", KEY_LIST_DRY_RUN, NULL, 0, "Print the whole plan, with the reason of every entry", 0},
	{"json", KEY_LIST_JSON, NULL, 0, "Print the whole plan as JSON, with the reason of every entry", 0},
	{0},
};

static error_t list_parse(int key, char *argument, struct argp_state *state)
{
	struct list *list = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[1] = &list->request;
		return 0;
	case ARGP_KEY_ARG:
		argp_error(state, "'%s' is one argument too many; a GPU is named so: --device %s", argument, argument);
		return EINVAL;
	case KEY_LIST_DRY_RUN:
		if (list->format == CTR_GPU_FORMAT_PATHS)
			list->format = CTR_GPU_FORMAT_TEXT;
		return 0;
	case KEY_LIST_JSON:
		list->format = CTR_GPU_FORMAT_JSON;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

int verb_list(struct global_options *globals, int argc, char **argv)
{
	static const struct argp argp = {
		.options = list_options,
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
	if (!r && doctor_warn_of_host(session.context, session.host, session.plan, false))
		r = EXIT_STATUS_FAILURE;
	request_options_clear(&list.request);
	return r;
}
