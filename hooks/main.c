/* SPDX-License-Identifier: Apache-2.0 */

/*
 * ctr-gpu-hook: the OCI hook. An engine runs it for a container whose namespaces exist and whose program has not
 * started. It gives that container the GPUs that its environment asks for. Most containers ask for none, and for those
 * it must be as if it were not there.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ctr-gpu.h>

#include "internal.h"
#include "process/phase.h"
#include "process/sanitise.h"
#include "runtime/runtime.h"

enum {
	EXIT_STATUS_USAGE = 2,
	STATE_DEADLINE_S = 10,
};

/* ---- as nvidia-cdi-hook, the name under which engines run it for specs of NVIDIA's tools ---- */

/* Whether it was called by this name. */
static bool cdi_hook_is_called(const char *program)
{
	return arguments_is_called(program, "nvidia-cdi-hook");
}

struct call {
	struct ctr_gpu_context *context;
	const char *const *arguments;
	const char *state;
	size_t size;
};

static int cdi_hook_run(void *user)
{
	const struct call *call = user;
	int r = phase_enter(PHASE_GIVE);

	if (r)
		return report_error_step("give up capabilities", r);
	r = ctr_gpu_cdi_run_hook(call->context, call->arguments, call->state, call->size);

	return r ? report_error_failure(call->context, r) : 0;
}

static int cdi_hook_serve(struct call *call)
{
	/* Engines show a hook's standard error only if the hook fails; then a warning may be the reason. */
	struct trace_echo echo = {.file = stderr, .warnings_only = true};
	int r, exit_status;

	if (ctr_gpu_context_new(&call->context) < 0)
		return report_error_step("begin", -ENOMEM);
	ctr_gpu_context_set_log(call->context, trace_log, &echo);
	/* No command of these specs depends on the settings. */
	(void)ctr_gpu_context_load_config(call->context, NULL);
	trace_open(ctr_gpu_context_log(call->context));
	r = ctr_gpu_run_in_child(call->context, cdi_hook_run, call, &exit_status);
	if (r) {
		exit_status = report_error_failure(call->context, r);
		deadline_let_go();
	}
	(void)ctr_gpu_context_unref(call->context);
	return exit_status;
}

/* All of it. Return: the exit status. */
static int cdi_hook_main(char **argv)
{
	struct call call = {.arguments = (const char *const *)argv + (argv[0] ? 1 : 0)};
	int r;

	trace_begin("nvidia-cdi-hook");
	if (argv[0] && argv[1] && (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-v") == 0)) {
		(void)printf("nvidia-cdi-hook of ctr-gpu %s\n", ctr_gpu_version());
		return report_error_end_output();
	}
	if (argv[0] && argv[1] && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
		(void)puts("Usage: nvidia-cdi-hook HOOK [OPTION...]\n"
			   "Container engines run this for CDI specs of NVIDIA's tools; ctr-gpu-hook(8) has more.");
		return report_error_end_output();
	}
	report_error_init();
	deadline_set(STATE_DEADLINE_S,
		     "nvidia-cdi-hook: [ETIMEDOUT] the container's state did not arrive on standard input; container "
		     "engines write it there");
	r = state_read(&call.state, &call.size);
	if (r)
		return report_error_step("read the container's state from standard input", r);
	deadline_set(0, "");
	return cdi_hook_serve(&call);
}

/* ---- as ctr-gpu-hook ---- */

struct hook {
	const struct arguments *arguments;
	FILE *log;              /* of --debug=FILE; NULL: none */
	int log_error;          /* why it cannot be written */
	struct trace_echo echo; /* of remarks */
	struct ctr_gpu_context *context;
	struct ctr_gpu_container *container;
	struct ctr_gpu_request *request;
	struct ctr_gpu_host *host;
	struct ctr_gpu_plan *plan;
};

static void hook_close(struct hook *hook)
{
	(void)ctr_gpu_plan_unref(hook->plan);
	(void)ctr_gpu_host_unref(hook->host);
	(void)ctr_gpu_request_unref(hook->request);
	(void)ctr_gpu_container_unref(hook->container);
	(void)ctr_gpu_context_unref(hook->context);
	if (hook->log)
		(void)fclose(hook->log);
}

/* O_NONBLOCK: a FIFO without a reader would block open(2), and the container's start with it. */
static FILE *hook_open_log(const char *path)
{
	int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0666);

	return fd < 0 ? NULL : fdopen(fd, "a");
}

static int hook_open(struct hook *hook)
{
	const struct arguments *arguments = hook->arguments;

	if (ctr_gpu_context_new(&hook->context) < 0)
		return report_error_step("begin", -ENOMEM);
	if (arguments->debug_file && !(hook->log = hook_open_log(arguments->debug_file)))
		hook->log_error = -errno;
	/* Warnings reach standard error only if asked for: some engines show it between the container's own output. */
	hook->echo.file = hook->log ? hook->log : arguments->debug ? stderr : NULL;
	if (hook->echo.file)
		ctr_gpu_context_set_log(hook->context, trace_log, &hook->echo);
	return 0;
}

/*
 * The settings decide what may be asked for. A CDI spec names the devices, in a hook for each; the environment says the
 * rest. Another of these hooks may act for this one; then this one's request stays void.
 */
static int hook_read_request(struct hook *hook)
{
	int r = ctr_gpu_context_load_config(hook->context, hook->arguments->config);
	char *devices = NULL;

	trace_open(ctr_gpu_context_log(hook->context));
	/* Without a log, remarks are not written at all. */
	if (ctr_gpu_context_log(hook->context))
		ctr_gpu_context_set_log(hook->context, trace_log, &hook->echo);
	if (!r)
		r = ctr_gpu_request_new(hook->context, &hook->request);
	if (!r && hook->arguments->cdi)
		r = ctr_gpu_container_hook_devices(hook->container, hook->arguments->all, &devices);
	if (r)
		return r;
	if (hook->arguments->cdi && !devices)
		return ctr_gpu_request_set_devices(hook->request, "void");
	r = ctr_gpu_request_read_container(hook->request, hook->container, devices);
	free(devices);
	return r;
}

static int hook_go_without(struct hook *hook, int r)
{
	const struct arguments *arguments = hook->arguments;

	(void)ctr_gpu_plan_unref(hook->plan);
	hook->plan = NULL;
	trace_log(&hook->echo, CTR_GPU_LOG_WARNING, ctr_gpu_context_message(hook->context));
	return report_error_go_without(hook->context, hook->request,
				       arguments->cdi ? CTR_GPU_METHOD_CDI : CTR_GPU_METHOD_HOOK, arguments->dry_run, r,
				       &hook->plan);
}

/* The image may lack what the host lacks, too. */
static int hook_fit_or_apply(struct hook *hook)
{
	int r = 0;

	if (hook->arguments->dry_run)
		r = ctr_gpu_plan_fit_container(hook->plan, hook->container);
	else if (!ctr_gpu_request_is_void(hook->request))
		r = ctr_gpu_plan_apply(hook->context, hook->plan, hook->container);
	return r == CTR_GPU_E_DRIVER_LIBRARY ? hook_go_without(hook, r) : r;
}

static int hook_give_gpus(void *user)
{
	struct hook *hook = user;
	const struct arguments *arguments = hook->arguments;
	int r = ctr_gpu_host_new(hook->context, &hook->host), limited;

	if (!r)
		r = ctr_gpu_plan_new(hook->context, hook->request, hook->host, &hook->plan);
	if (r)
		r = hook_go_without(hook, r);
	if (!r && hook->plan && !arguments->dry_run)
		r = ctr_gpu_plan_prepare(hook->context, hook->plan);
	limited = phase_enter(PHASE_GIVE);
	if (limited)
		return report_error_step("give up capabilities", limited);
	if (!r)
		r = hook_fit_or_apply(hook);
	if (!r && arguments->dry_run)
		r = ctr_gpu_plan_write(hook->plan, CTR_GPU_FORMAT_JSON, stdout);
	return r ? report_error_failure(hook->context, r) : 0;
}

/* Whether the hook is called for containers with GPUs only: for a CDI device, by Docker's --gpus, or by hand. */
static bool hook_is_for_gpus(const struct arguments *arguments)
{
	return arguments->cdi || arguments->dry_run ||
	       arguments_is_called(arguments->all[0], "nvidia-container-runtime-hook");
}

struct ended {
	struct ctr_gpu_context *context;
	const char *state;
	size_t size;
};

static int hook_clean_in_child(void *user)
{
	const struct ended *ended = user;

	return phase_enter(PHASE_GIVE) || ctr_gpu_container_clean(ended->context, ended->state, ended->size);
}

/*
 * A container that cannot be cleaned has ended all the same: if a hook fails by then, engines do not delete it. Return:
 * whether it has ended.
 */
static bool hook_clean(struct ctr_gpu_context *context, const char *state, size_t size)
{
	struct ended ended = {context, state, size};
	int exit_status;

	deadline_set(0, "");
	return ctr_gpu_run_in_child(context, hook_clean_in_child, &ended, &exit_status) || !exit_status;
}

/* Settings and host are looked at only for a container that asks for something. */
static int hook_serve(const struct arguments *arguments, const char *state, size_t size)
{
	__attribute__((cleanup(hook_close))) struct hook hook = {.arguments = arguments};
	int r;

	r = hook_open(&hook);
	if (r)
		return r;
	if (arguments->stage == STAGE_CLEAN) {
		(void)hook_clean(hook.context, state, size);
		return 0;
	}
	r = ctr_gpu_container_new_from_state(hook.context, state, size, &hook.container);
	/* Files in hooks directories have the same arguments for all of their stages. */
	if (r == CTR_GPU_E_BAD_STATE && memmem(state, size, "\"stopped\"", 9) && hook_clean(hook.context, state, size))
		return 0;
	if (!hook_is_for_gpus(arguments) &&
	    (r ? !ctr_gpu_state_may_ask(state, size) : !ctr_gpu_container_asks(hook.container)))
		return 0;
	if (hook.log_error)
		return report_error_step("write the log of --debug", hook.log_error);
	if (!r)
		r = hook_read_request(&hook);
	if (r)
		return report_error_failure(hook.context, r);
	if (ctr_gpu_request_is_void(hook.request) && !arguments->dry_run)
		return 0;
	deadline_set(0, "");
	r = report_error_failure(hook.context, ctr_gpu_run_in_child(hook.context, hook_give_gpus, &hook, NULL));
	deadline_let_go();
	return r;
}

static int hook_run_stage(const struct arguments *arguments)
{
	const char *state;
	size_t size;
	int r;

	report_error_init();
	deadline_set(
		STATE_DEADLINE_S,
		"ctr-gpu-hook: [ETIMEDOUT] the container's state did not arrive on standard input; container engines "
		"write it there");
	/* Also without anything to do: the engine takes a hook that does not read its pipe for one that crashed. */
	r = state_read(&state, &size);
	if (r && (arguments->stage == STAGE_CLEAN || (!hook_is_for_gpus(arguments) && !ctr_gpu_state_may_ask("", 0))))
		return 0;
	if (r)
		return report_error_step("read the container's state from standard input", r);
	return arguments->stage == STAGE_IGNORED ? 0 : hook_serve(arguments, state, size);
}

static int hook_print_text(const struct arguments *arguments)
{
	if (arguments->help)
		arguments_usage(stdout);
	else
		(void)printf("ctr-gpu-hook %s%s\n", ctr_gpu_version(), *CTR_GPU_COMMIT ? " (" CTR_GPU_COMMIT ")" : "");
	return report_error_end_output();
}

int main(int argc, char **argv)
{
	struct arguments arguments;
	const char *step;
	int r;

	/* The environment and descriptors are for the OCI runtime that this becomes. */
	if (runtime_is_called(argv[0]))
		return runtime_main(argc, argv);
	r = sanitise(&step);
	if (r)
		return report_error_step(step, r);
	if (cdi_hook_is_called(argv[0]))
		return cdi_hook_main(argv);
	if (!arguments_parse(argc, argv, &arguments))
		return EXIT_STATUS_USAGE;
	return arguments.version || arguments.help ? hook_print_text(&arguments) : hook_run_stage(&arguments);
}
