/* SPDX-License-Identifier: Apache-2.0 */

/* ctr-gpu configure: give a container that is being created the GPUs of this host. */

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/output.h"
#include "cli/request.h"
#include "cli/verbs.h"

enum {
	KEY_JSON = 0x200,
	KEY_NO_CGROUPS,
	KEY_DRY_RUN,
};

struct configure {
	struct globals *globals;
	struct session *session;
	struct request_options request;
	pid_t pid;
	const char *rootfs;
	bool no_cgroups, dry_run, json;
};

static const struct argp_option options[] = {
	{"pid", 'p', "PID", 0,
	 "The container's first process; without it, ROOTFS is one in the caller's own mount namespace", 0},
	{"no-cgroups", KEY_NO_CGROUPS, NULL, 0, "Leave the container's device rules (cgroup) alone", 0},
	{"dry-run", KEY_DRY_RUN, NULL, 0, "Show the plan and change nothing", 0},
	{"json", KEY_JSON, NULL, 0, "Print the plan as JSON, with the reason of every entry", 0},
	{0},
};

static pid_t configure_parse_pid(const char *text, const struct argp_state *state)
{
	char *end;
	long pid;

	errno = 0;
	pid = strtol(text, &end, 10);
	if (errno || end == text || *end || pid <= 0 || pid > INT_MAX)
		argp_error(state, "--pid is the number of a process, not '%s'", text);
	return (pid_t)pid;
}

static void configure_take_rootfs(struct configure *configure, const char *argument, const struct argp_state *state)
{
	if (configure->rootfs)
		argp_error(state, "'%s' is one argument too many", argument);
	if (argument[0] != '/')
		argp_error(state, "ROOTFS must be an absolute path, not '%s'", argument);
	configure->rootfs = argument;
}

static error_t configure_parse(int key, char *argument, struct argp_state *state)
{
	struct configure *configure = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[1] = &configure->request;
		return 0;
	case 'p':
		configure->pid = configure_parse_pid(argument, state);
		return 0;
	case KEY_NO_CGROUPS:
		configure->no_cgroups = true;
		return 0;
	case KEY_DRY_RUN:
		configure->dry_run = true;
		return 0;
	case KEY_JSON:
		configure->json = true;
		return 0;
	case ARGP_KEY_ARG:
		configure_take_rootfs(configure, argument, state);
		return 0;
	case ARGP_KEY_NO_ARGS:
		argp_error(state, "ROOTFS is missing: the absolute path of the container's root directory");
		return EINVAL;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static int configure_apply(struct session *session, const struct configure *configure)
{
	int r = 0;

	/* In a container's own namespace it ends with the container. */
	if (!configure->pid && geteuid() == 0)
		r = ctr_gpu_container_set_record(session->container, CONFIGURED_DIRECTORY);
	if (r)
		return r;
	if (configure->no_cgroups)
		ctr_gpu_container_leave_cgroup(session->container);
	return ctr_gpu_plan_apply(session->context, session->plan, session->container);
}

static int configure_give(void *user)
{
	const struct configure *configure = user;
	struct session *session = configure->session;
	int r, exit_status;

	exit_status = request_plan(session, &configure->request);
	if (exit_status)
		return exit_status;
	if (!configure->dry_run)
		exit_status = session_enter(PHASE_GIVE);
	if (exit_status)
		return exit_status;
	r = ctr_gpu_container_new(session->context, configure->pid, configure->rootfs, &session->container);
	/* A plan can be shown before there is a container. */
	if (configure->dry_run)
		r = r ? 0 : ctr_gpu_plan_fit_container(session->plan, session->container);
	else if (!r)
		r = configure_apply(session, configure);
	if (!r && configure->json)
		r = ctr_gpu_plan_write(session->plan, CTR_GPU_FORMAT_JSON, stdout);
	else if (!r && configure->dry_run)
		r = ctr_gpu_plan_write(session->plan, CTR_GPU_FORMAT_TEXT, stdout);
	return session_check(session, r);
}

static int configure_run(struct configure *configure)
{
	int r = session_open(configure->session, configure->globals);

	if (r)
		return r;
	if (!configure->dry_run)
		session_run_in_child(configure->session, configure_give, configure);
	return configure_give(configure);
}

int verb_configure(struct globals *globals, int argc, char **argv)
{
	static const struct argp_child children[] = {
		{&globals_behind_verb, 0, "Options of every command:", 2},
		{&request_argp, 0, NULL, 1},
		{0},
	};
	static const struct argp argp = {
		.options = options,
		.parser = configure_parse,
		.args_doc = "ROOTFS",
		.children = children,
		.doc = "Give GPUs of this host to a container that is being created: all of them, or those that "
		       "--device names.",
	};
	_cleanup_session_ struct session session = {0};
	struct configure configure = {.globals = globals, .session = &session};
	int r;

	globals_parse_verb(globals, &argp, argc, argv, &configure);
	r = configure_run(&configure);
	request_options_clear(&configure.request);
	return r;
}
