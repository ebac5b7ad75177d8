/* SPDX-License-Identifier: Apache-2.0 */

/* ctr-gpu attach and detach: give GPUs to a container that runs; take them back. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"
#include "cli/doctor/run.h"
#include "cli/output.h"
#include "cli/session.h"
#include "cli/verbs.h"
#include "engines/engine.h"
#include "lib/container.h"
#include "lib/context.h"

enum {
	KEY_JSON = 0x200,
	KEY_NO_CGROUPS,
	KEY_DRY_RUN,
	KEY_FORCE,
};

struct attach {
	struct session *session;
	struct request_options request;
	const char *name;
	pid_t pid;
	struct container_pid found; /* by its name; without a pid: by that */
	char *records;
	bool no_cgroups, dry_run, json, force;
};

/* ---- which container ---- */

/* A user's records are in that user's directory for files of this boot. */
static int attach_find_records(struct attach *attach)
{
	attach->records = containers_find_records();
	if (attach->records)
		return 0;
	return geteuid() == 0 ? output_no_memory()
			      : output_print_advised(
					("XDG_RUNTIME_DIR is not set, where what is done is written down"),
					("It is set in a session: log in as this user, or set it to /run/user/%u.",
					 (unsigned)geteuid()));
}

/* Before anything else: this asks engines. Return: 0, or the exit status. */
static int attach_find(struct attach *attach)
{
	struct session *session = attach->session;
	int r = attach_find_records(attach);

	/* Without that directory a user's containers are not found, either. */
	if (r || request_parse_pid(attach->name, &attach->pid))
		return r;
	r = container_pid_find(attach->name, &attach->found, &session->context->err);
	if (r)
		return session_check(session, r);
	attach->pid = attach->found.pid;
	session_log(session, "%s is %s of %s, process %d", attach->name, attach->found.id, attach->found.engine,
		    (int)attach->pid);
	return 0;
}

/* The number may be another process's by now. Return: as ctr_gpu_container_new_running(). */
static int attach_open(struct attach *attach)
{
	struct session *session = attach->session;
	int r = ctr_gpu_container_new_running(session->context, attach->pid, &session->container);

	if (r || !attach->found.pid)
		return r;
	if (container_pid_is(&attach->found, session->container->process))
		return str_replace(&session->container->id, attach->found.id);
	return err_set_advised(
		&session->context->err, -ESTALE,
		("process %d, which %s named, is another one by now.", (int)attach->pid, attach->found.engine),
		("Try again."));
}

/* What is said of a process is said of the container that was named. Return: as session_check(). */
static int attach_check(struct attach *attach, int r)
{
	struct err *err = &attach->session->context->err;

	if (r != 0 && attach->found.pid && err->text[0])
		(void)err_prefix(err, r, "%s: ", attach->name);
	return session_check(attach->session, r);
}

static void attach_clear(struct attach *attach)
{
	request_options_clear(&attach->request);
	container_pid_clear(&attach->found);
	free(attach->records);
}

/* ---- attach ---- */

static const struct argp_option options[] = {
	{"no-cgroups", KEY_NO_CGROUPS, NULL, 0, "Leave the container's device rules (cgroup) alone", 0},
	{"dry-run", KEY_DRY_RUN, NULL, 0, "Show the plan and change nothing", 0},
	{"json", KEY_JSON, NULL, 0,
	 "Print the plan as JSON, with the reason of every entry; without --dry-run it is carried out, too", 0},
	{0},
};

static error_t attach_parse(int key, char *argument, struct argp_state *state)
{
	struct attach *attach = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[1] = &attach->request;
		return 0;
	case KEY_NO_CGROUPS:
		attach->no_cgroups = true;
		return 0;
	case KEY_DRY_RUN:
		attach->dry_run = true;
		return 0;
	case KEY_JSON:
		attach->json = true;
		return 0;
	case ARGP_KEY_ARG:
		if (attach->name)
			argp_error(state, "'%s' is one argument too many; GPUs are named by --device", argument);
		attach->name = argument;
		return 0;
	case ARGP_KEY_NO_ARGS:
		argp_error(state, "CONTAINER is missing: its name, its id, or the number of its first process");
		return EINVAL;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static int attach_show(struct attach *attach)
{
	struct session *session = attach->session;
	int r, exit_status = request_plan(session, &attach->request);

	if (exit_status)
		return exit_status;
	r = attach_open(attach);
	if (!r)
		r = ctr_gpu_plan_fit_container(session->plan, session->container);
	if (!r)
		r = ctr_gpu_plan_write(session->plan, attach->json ? CTR_GPU_FORMAT_JSON : CTR_GPU_FORMAT_TEXT, stdout);
	return attach_check(attach, r);
}

static int attach_give(void *user)
{
	struct attach *attach = user;
	struct session *session = attach->session;
	int r = request_prepare(session, &attach->request);

	if (r)
		return r;
	r = attach_open(attach);
	if (!r)
		r = ctr_gpu_container_set_record(session->container, attach->records);
	if (!r)
		r = request_give(session, attach->no_cgroups, attach->json);
	return attach_check(attach, r);
}

int verb_attach(struct global_options *globals, int argc, char **argv)
{
	static const struct argp argp = {
		.options = options,
		.parser = attach_parse,
		.args_doc = "CONTAINER",
		.children = request_children,
		.doc = "Give GPUs of this host to a container that runs: all of them, or those that --device names. "
		       "CONTAINER is its name or id, as Docker, Podman, containerd, runc or crun know it, or the "
		       "number of its first process.",
	};
	_cleanup_session_ struct session session = {0};
	struct attach attach = {.session = &session};
	int r;

	global_options_parse_verb(globals, &argp, argc, argv, &attach);
	output_set_json(attach.json);
	r = session_open(&session, globals);
	if (!r)
		r = attach_find(&attach);
	if (!r && !attach.dry_run)
		session_run_in_child(&session, attach_give, &attach);
	if (!r)
		r = attach_show(&attach);
	attach_clear(&attach);
	return r;
}

/* ---- detach ---- */

static const struct argp_option detach_options[] = {
	{"force", KEY_FORCE, NULL, 0, "Also if a process has the GPU open: what is open stays open", 0},
	{0},
};

static error_t detach_parse(int key, char *argument, struct argp_state *state)
{
	struct attach *attach = state->input;

	if (key == KEY_FORCE) {
		attach->force = true;
		return 0;
	}
	return key == ARGP_KEY_ARG || key == ARGP_KEY_NO_ARGS ? attach_parse(key, argument, state) : ARGP_ERR_UNKNOWN;
}

int verb_detach(struct global_options *globals, int argc, char **argv)
{
	static const struct argp argp = {
		.options = detach_options,
		.parser = detach_parse,
		.args_doc = "CONTAINER",
		.children = global_options_children,
		.doc = "Take back what 'ctr-gpu attach' gave a container that runs: all of it. What the container was "
		       "started with stays.",
	};
	_cleanup_session_ struct session session = {0};
	struct attach attach = {.session = &session};
	int r;

	global_options_parse_verb(globals, &argp, argc, argv, &attach);
	r = session_open(&session, globals);
	if (!r)
		r = attach_find(&attach);
	if (!r)
		r = attach_check(&attach, attach_open(&attach));
	if (!r)
		r = attach_check(&attach, ctr_gpu_undo_running(session.context, session.container, attach.records,
							       attach.force));
	attach_clear(&attach);
	return r;
}
