/* SPDX-License-Identifier: Apache-2.0 */

/* ctr-gpu configure and unconfigure: give a container that is being created the GPUs of this host; take them back. */

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/output.h"
#include "cli/session.h"
#include "cli/verbs.h"
#include "lib/container.h"

enum {
	KEY_JSON = 0x200,
	KEY_NO_CGROUPS,
	KEY_DRY_RUN,
};

struct configure {
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
	{"json", KEY_JSON, NULL, 0,
	 "Print the plan as JSON, with the reason of every entry; without --dry-run it is carried out, too", 0},
	{0},
};

static error_t configure_parse(int key, char *argument, struct argp_state *state)
{
	struct configure *configure = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[1] = &configure->request;
		return 0;
	case 'p':
		if (!request_parse_pid(argument, &configure->pid))
			argp_error(state, "--pid is the number of a process, not '%s'", argument);
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
		if (configure->rootfs)
			argp_error(state, "'%s' is one argument too many; GPUs are named by --device", argument);
		if (argument[0] != '/')
			argp_error(state, "ROOTFS must be an absolute path, not '%s'", argument);
		configure->rootfs = argument;
		return 0;
	case ARGP_KEY_NO_ARGS:
		argp_error(state, "ROOTFS is missing: the absolute path of the container's root directory");
		return EINVAL;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/*
 * Opens the container, if possible. A plan can be shown without permission to apply it, and for a running container,
 * but not for a missing directory. Return: 0, with or without a container; or the exit status.
 */
static int configure_find(const struct configure *configure)
{
	struct session *session = configure->session;
	int r = ctr_gpu_container_new(session->context, configure->pid, configure->rootfs, &session->container);

	if (r != CTR_GPU_E_NO_PERMISSION && r != CTR_GPU_E_CONTAINER_RUNNING)
		return session_check(session, r);
	if (configure->pid || access(configure->rootfs, F_OK) == 0 || (errno != ENOENT && errno != ENOTDIR))
		return 0;
	return output_print_advised(("the root filesystem %s cannot be opened: %m", configure->rootfs),
				    ("%s", ROOTFS_ADVICE));
}

static int configure_show(const struct configure *configure)
{
	struct session *session = configure->session;
	int r = 0, exit_status;

	exit_status = request_plan(session, &configure->request);
	if (!exit_status)
		exit_status = configure_find(configure);
	if (exit_status)
		return exit_status;
	if (session->container)
		r = ctr_gpu_plan_fit_container(session->plan, session->container);
	if (!r)
		r = ctr_gpu_plan_write(session->plan, configure->json ? CTR_GPU_FORMAT_JSON : CTR_GPU_FORMAT_TEXT,
				       stdout);
	return session_check(session, r);
}

static int configure_give(void *user)
{
	const struct configure *configure = user;
	struct session *session = configure->session;
	int r = request_prepare(session, &configure->request);

	if (r)
		return r;
	r = ctr_gpu_container_new(session->context, configure->pid, configure->rootfs, &session->container);
	/* In a container's own namespace the record ends with the container. */
	if (!r && !configure->pid && geteuid() == 0)
		r = ctr_gpu_container_set_record(session->container, CONFIGURED_DIRECTORY);
	if (!r)
		r = request_give(session, configure->no_cgroups, configure->json);
	return session_check(session, r);
}

int verb_configure(struct global_options *globals, int argc, char **argv)
{
	static const struct argp argp = {
		.options = options,
		.parser = configure_parse,
		.args_doc = "ROOTFS",
		.children = request_children,
		.doc = "Give GPUs of this host to a container that is being created: all of them, or those that "
		       "--device names.",
	};
	_cleanup_session_ struct session session = {0};
	struct configure configure = {.session = &session};
	int r;

	global_options_parse_verb(globals, &argp, argc, argv, &configure);
	output_set_json(configure.json);
	r = session_open(&session, globals);
	if (!r && !configure.dry_run)
		session_run_in_child(&session, configure_give, &configure);
	if (!r)
		r = configure.dry_run ? configure_show(&configure) : configure_give(&configure);
	request_options_clear(&configure.request);
	return r;
}

/* ---- unconfigure ---- */

/* ctr-gpu unconfigure: take back what `ctr-gpu configure` did to a root filesystem by hand. */

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
