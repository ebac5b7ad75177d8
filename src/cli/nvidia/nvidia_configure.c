/* SPDX-License-Identifier: Apache-2.0 */

/*
 * nvidia-container-cli configure: give a container that is being created the GPUs. Programs that create containers run
 * this as a hook, so it does not trust what it inherits any more than ctr-gpu-hook does.
 */

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/nvidia/nvidia.h"
#include "cli/output.h"
#include "process/sanitise.h"

enum {
	KEY_MIG_CONFIG = 0x200,
	KEY_MIG_MONITOR,
	KEY_NO_CGROUPS,
	KEY_NO_DEVBIND,
	KEY_DRY_RUN,
	KEY_CUDA_COMPAT_MODE,
	KEY_IGNORED,
};

enum { LOAD_DEADLINE_S = 60 };

struct nvidia_configure {
	struct session *session;
	struct request_options request;
	pid_t pid;
	const char *rootfs, *ldconfig, *cuda_compat;
	bool no_cgroups, no_devbind, dry_run, ignored;
};

static const struct argp_option options[] = {
	{"pid", 'p', "PID", 0,
	 "The container's first process; without it, ROOTFS is in the caller's own mount namespace", 0},
	{"mig-config", KEY_MIG_CONFIG, "all", 0, "Let the container make parts of GPUs (MIG)", 0},
	{"mig-monitor", KEY_MIG_MONITOR, "all", 0, "Let the container see everybody's parts of GPUs (MIG)", 0},
	{"no-cgroups", KEY_NO_CGROUPS, NULL, 0, "Leave the container's device rules (cgroup) alone", 0},
	{"no-devbind", KEY_NO_DEVBIND, NULL, 0, "Leave the container's device nodes alone", 0},
	{"dry-run", KEY_DRY_RUN, NULL, 0, "Print the plan, for programs, and change nothing", 0},
	{NULL, 0, NULL, 0, "Accepted, and not needed:", 3},
	{"ldconfig", 'l', "[@]PATH", 0, "The loader's cache is written without running anything", 3},
	{"no-cntlibs", KEY_IGNORED, NULL, 0, "Libraries of the container are never used", 3},
	{"cuda-compat-mode", KEY_CUDA_COMPAT_MODE, "MODE", 0, "They are not used as compatibility libraries either", 3},
	{"no-persistenced", KEY_IGNORED, NULL, 0, "Sockets and firmware that the host has are given all the same", 3},
	{"no-fabricmanager", KEY_IGNORED, NULL, OPTION_ALIAS, NULL, 3},
	{"no-gsp-firmware", KEY_IGNORED, NULL, OPTION_ALIAS, NULL, 3},
	{0},
};

static void nvidia_configure_take_rootfs(struct nvidia_configure *configure, const char *argument)
{
	if (configure->rootfs)
		nvidia_input_error("'%s' is one argument too many", argument);
	if (argument[0] != '/' || strcmp(argument, "/") == 0)
		nvidia_input_error("invalid rootfs directory: it is the absolute path of a container's, not '%s'",
				   argument);
	configure->rootfs = argument;
}

/* The member that an option without a value sets; NULL for other keys. */
static bool *nvidia_configure_find_flag(struct nvidia_configure *configure, int key)
{
	return key == KEY_NO_CGROUPS   ? &configure->no_cgroups
	       : key == KEY_NO_DEVBIND ? &configure->no_devbind
	       : key == KEY_DRY_RUN    ? &configure->dry_run
	       : key == KEY_IGNORED    ? &configure->ignored
				       : NULL;
}

static error_t nvidia_configure_parse(int key, char *argument, struct argp_state *state)
{
	struct nvidia_configure *configure = state->input;
	bool *flag = nvidia_configure_find_flag(configure, key);

	if (flag) {
		*flag = true;
		return 0;
	}
	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &configure->request;
		return 0;
	case 'p':
		if (!request_parse_pid(argument, &configure->pid))
			nvidia_input_error("--pid is the number of a process, not '%s'", argument);
		return 0;
	case 'l':
		configure->ldconfig = argument;
		return 0;
	case KEY_MIG_CONFIG:
		nvidia_take_mig("mig-config", argument, CTR_GPU_MIG_CONFIG, &configure->request.mig);
		return 0;
	case KEY_MIG_MONITOR:
		nvidia_take_mig("mig-monitor", argument, CTR_GPU_MIG_MONITOR, &configure->request.mig);
		return 0;
	case KEY_CUDA_COMPAT_MODE:
		configure->cuda_compat = argument;
		return 0;
	case ARGP_KEY_ARG:
		nvidia_configure_take_rootfs(configure, argument);
		return 0;
	case ARGP_KEY_NO_ARGS:
		nvidia_input_error("ROOTFS is missing: the absolute path of the container's root directory");
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static int nvidia_configure_apply(void *user)
{
	const struct nvidia_configure *configure = user;
	struct session *session = configure->session;
	int r, exit_status;

	exit_status = nvidia_plan(session, &configure->request);
	if (!exit_status)
		exit_status = session_enter(PHASE_GIVE);
	if (exit_status)
		return exit_status;
	nvidia_begin("container error");
	r = ctr_gpu_container_new(session->context, configure->pid, configure->rootfs, &session->container);
	if (r)
		return session_check(session, r);
	if (configure->no_cgroups)
		ctr_gpu_container_leave_cgroup(session->container);
	if (configure->no_devbind)
		ctr_gpu_container_leave_devices(session->container);
	nvidia_begin("mount error");
	return session_check(session, ctr_gpu_plan_apply(session->context, session->plan, session->container));
}

/* A plan can be shown before there is a container. */
static int nvidia_configure_show(const struct nvidia_configure *configure)
{
	struct session *session = configure->session;
	int r = nvidia_plan(session, &configure->request);

	if (r)
		return r;
	if (ctr_gpu_container_new(session->context, configure->pid, configure->rootfs, &session->container) == 0)
		r = ctr_gpu_plan_fit_container(session->plan, session->container);
	if (!r)
		r = ctr_gpu_plan_write(session->plan, CTR_GPU_FORMAT_JSON, stdout);
	return session_check(session, r);
}

static int nvidia_configure_prepare(struct nvidia *nvidia, char **ret_log)
{
	const char *step;
	int r = 0;

	deadline_set(LOAD_DEADLINE_S,
		     NVIDIA_NAME ": container error: gave up after a minute of loading the driver [ETIMEDOUT]\n"
				 "    '--debug=FILE' before 'configure' shows how far it came");
	/* The file may be relative to the working directory, and that is about to be left. */
	if (nvidia->globals.debug_file) {
		*ret_log = path_absolute(nvidia->globals.debug_file);
		if (!*ret_log)
			return output_print("cannot write the log to %s: %m", nvidia->globals.debug_file);
		nvidia->globals.debug_file = *ret_log;
	}
	/* What --load-kmods asks for takes capabilities that are given up next. */
	if (nvidia->load_kmods) {
		_cleanup_session_ struct session session = {0};

		r = nvidia_open(&session, nvidia);
		nvidia->load_kmods = false;
	}
	if (r)
		return r;
	deadline_set(0, "");
	errno = -sanitise(&step);
	return errno ? output_print("permission error: cannot %s: %m", step) : 0;
}

/*
 * Hooks of LXC have the container's environment, those of `ctr run` the client's. What it says of vCUDA is kept, since
 * nothing of it is left afterwards.
 */
static int nvidia_configure_keep_mode(struct request_options *request)
{
	static const char *const names[] = {"CTR_GPU_MODE", "CTR_GPU_MEMORY", "CTR_GPU_SHARE"};
	const size_t most = sizeof(names) / sizeof(names[0]);
	size_t count = 0;

	request->environment = calloc(most + 1, sizeof(*request->environment));
	for (size_t i = 0; request->environment && i < most; i++) {
		const char *value = getenv(names[i]);

		if (value && asprintf(&request->environment[count++], "%s=%s", names[i], value) < 0)
			return -ENOMEM;
	}
	return request->environment ? 0 : -ENOMEM;
}

static int nvidia_configure_run(struct nvidia *nvidia, struct nvidia_configure *configure)
{
	_cleanup_session_ struct session session = {0};
	_cleanup_free_ char *log = NULL;
	char **devices = &configure->request.devices;
	int r = 0;

	/* The caller's devices, or none: only `list` shows all of them unasked. */
	if (nvidia_configure_keep_mode(&configure->request) < 0 ||
	    ((!*devices || !**devices) && request_list_append(devices, "none")))
		return output_no_memory();
	nvidia->load_kmods = nvidia->load_kmods && !configure->dry_run;
	if (!configure->dry_run)
		r = nvidia_configure_prepare(nvidia, &log);
	if (!r)
		r = nvidia_open(&session, nvidia);
	if (r)
		return r;
	if (configure->ldconfig)
		session_log(&session, "--ldconfig is not needed: no ldconfig is run");
	if (configure->cuda_compat && strcmp(configure->cuda_compat, "disabled") != 0)
		session_log(&session,
			    "--cuda-compat-mode=%s is not done: nothing of an image is used as a driver's library",
			    configure->cuda_compat);
	configure->session = &session;
	if (!configure->dry_run)
		session_run_in_child(&session, nvidia_configure_apply, configure);
	return nvidia_configure_show(configure);
}

int nvidia_configure(struct nvidia *nvidia, int argc, char **argv)
{
	static const struct argp_child children[] = {{&request_argp, 0, NULL, 1}, {0}};
	static const struct argp argp = {
		.options = options,
		.parser = nvidia_configure_parse,
		.args_doc = "ROOTFS",
		.children = children,
		.doc = "Give GPUs of this host to a container that is being created: those that --device names.",
	};
	struct nvidia_configure configure = {0};
	int r;

	nvidia_parse(&argp, argc, argv, &configure);
	r = nvidia_configure_run(nvidia, &configure);
	request_options_clear(&configure.request);
	return r;
}
