/* SPDX-License-Identifier: Apache-2.0 */

/*
 * ctr-gpu-hook: the OCI hook. An engine runs it for a container whose namespaces exist and whose program has not
 * started; it gives that container the GPUs which its environment asks for. Most containers ask for none, and for those
 * it must be as if it were not there.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include <ctr-gpu.h>

#include "arguments.h"
#include "cdi.h"
#include "message.h"
#include "process/deadline.h"
#include "process/phase.h"
#include "process/sanitise.h"
#include "runtime/runtime.h"
#include "state.h"
#include "trace.h"

enum {
	EXIT_STATUS_USAGE = 2,
	STATE_DEADLINE_S = 10,
};

struct hook {
	const struct arguments *arguments;
	FILE *log; /* of --debug=FILE; NULL: standard error */
	bool debug;
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

/* Not even warnings reach standard error unasked: some engines let it appear between the container's own output. */
static void hook_write_remark(void *user, enum ctr_gpu_log_level level, const char *text)
{
	const struct hook *hook = user;

	trace_write(level == CTR_GPU_LOG_WARNING ? "warning" : "debug", text);
	if (hook->debug)
		(void)fprintf(hook->log ? hook->log : stderr, "ctr-gpu-hook: %s: %s\n",
			      level == CTR_GPU_LOG_WARNING ? "warning" : "debug", text);
}

static int hook_open(struct hook *hook)
{
	const struct arguments *arguments = hook->arguments;

	if (ctr_gpu_context_new(&hook->context) < 0)
		return message_error("begin", -ENOMEM);
	hook->debug = arguments->debug;
	if (arguments->debug_file && !(hook->log = fopen(arguments->debug_file, "ae")))
		return message_error("write the log", -errno);
	ctr_gpu_context_set_log(hook->context, hook_write_remark, hook);
	return 0;
}

/*
 * A CDI spec says which devices, in a hook for each; the environment says the rest. Another of these hooks may act for
 * this one, whose request stays void then.
 */
static int hook_read_cdi_request(const struct hook *hook)
{
	char *devices;
	int r;

	r = ctr_gpu_container_hook_devices(hook->container, hook->arguments->all, &devices);
	if (r || !devices)
		return r ? r : ctr_gpu_request_set_devices(hook->request, "void");
	r = ctr_gpu_request_read_container(hook->request, hook->container, devices);
	free(devices);
	return r;
}

/* Who may ask for what, the settings say. */
static int hook_read_request(struct hook *hook)
{
	int r = ctr_gpu_context_load_config(hook->context, hook->arguments->config);

	trace_open("ctr-gpu-hook", ctr_gpu_context_log(hook->context));
	if (!r)
		r = ctr_gpu_request_new(hook->context, &hook->request);
	if (r)
		return r;
	return hook->arguments->cdi ? hook_read_cdi_request(hook)
				    : ctr_gpu_request_read_container(hook->request, hook->container, NULL);
}

static int hook_make_plan(struct hook *hook)
{
	int r = ctr_gpu_host_new(hook->context, &hook->host);

	return r ? r : ctr_gpu_plan_new(hook->context, hook->request, hook->host, &hook->plan);
}

/* Why there is no plan, or 0 where the container starts without the GPUs that it asks for. */
static int hook_go_without(struct hook *hook, int r)
{
	const enum ctr_gpu_door door = hook->arguments->cdi ? CTR_GPU_DOOR_CDI : CTR_GPU_DOOR_HOOK;
	const enum ctr_gpu_on_missing policy = ctr_gpu_request_on_missing(hook->request, door, r);

	if (policy == CTR_GPU_ON_MISSING_FAIL)
		return r;
	hook_write_remark(hook, CTR_GPU_LOG_WARNING, ctr_gpu_context_message(hook->context));
	if (policy == CTR_GPU_ON_MISSING_WARN && !hook->arguments->dry_run)
		message_missing("ctr-gpu-hook", hook->context, r);
	r = ctr_gpu_request_set_devices(hook->request, "void");
	return r ? r : ctr_gpu_plan_new(hook->context, hook->request, NULL, &hook->plan);
}

static int hook_show_plan(struct hook *hook)
{
	int r = ctr_gpu_plan_fit_container(hook->plan, hook->container);

	return r ? r : ctr_gpu_plan_write(hook->plan, CTR_GPU_FORMAT_JSON, stdout);
}

static int hook_give_gpus(void *user)
{
	struct hook *hook = user;
	int r = hook_make_plan(hook), limited;

	if (r)
		r = hook_go_without(hook, r);
	limited = phase_enter(PHASE_GIVE);
	if (limited)
		return message_error("give up capabilities", limited);
	if (!r && hook->arguments->dry_run)
		r = hook_show_plan(hook);
	else if (!r && !ctr_gpu_request_is_void(hook->request))
		r = ctr_gpu_plan_apply(hook->context, hook->plan, hook->container);
	return r ? message_failure(hook->context, r) : 0;
}

static int hook_give_in_child(struct hook *hook)
{
	int r, exit_status;

	deadline_set(0, "");
	r = ctr_gpu_run_in_child(hook->context, hook_give_gpus, hook, &exit_status);
	if (!r)
		return exit_status;
	exit_status = message_failure(hook->context, r);
	deadline_let_go();
	return exit_status;
}

/* Whether the hook is called for containers with GPUs only: for a CDI device, by Docker's --gpus, or by hand. */
static bool hook_is_for_gpus(const struct arguments *arguments)
{
	return arguments->cdi || arguments->dry_run ||
	       arguments_is_called(arguments->all[0], "nvidia-container-runtime-hook");
}

/* Settings and host are looked at only for a container that asks for something. */
static int hook_serve(const struct arguments *arguments, const char *state, size_t size)
{
	__attribute__((cleanup(hook_close))) struct hook hook = {.arguments = arguments};
	int r;

	r = hook_open(&hook);
	if (r)
		return r;
	r = ctr_gpu_container_new_from_state(hook.context, state, size, &hook.container);
	if (!hook_is_for_gpus(arguments) &&
	    (r ? !ctr_gpu_state_may_ask(state, size) : !ctr_gpu_container_asks(hook.container)))
		return 0;
	if (!r)
		r = hook_read_request(&hook);
	if (r)
		return message_failure(hook.context, r);
	return ctr_gpu_request_is_void(hook.request) && !arguments->dry_run ? 0 : hook_give_in_child(&hook);
}

static int hook_run_stage(const struct arguments *arguments)
{
	const char *state;
	size_t size;
	int r;

	message_init();
	deadline_set(
		STATE_DEADLINE_S,
		"ctr-gpu-hook: [ETIMEDOUT] the container's state did not arrive on standard input; container engines "
		"write it there");
	/* Also where there is nothing to do: an engine may take a pipe that nobody reads for a hook that crashed. */
	r = state_read(&state, &size);
	if (r && !hook_is_for_gpus(arguments) && !ctr_gpu_state_may_ask("", 0))
		return 0;
	if (r)
		return message_error("read the container's state from standard input", r);
	return arguments->stage == STAGE_IGNORED ? 0 : hook_serve(arguments, state, size);
}

static int hook_print_text(const struct arguments *arguments)
{
	if (arguments->help)
		arguments_usage(stdout);
	else
		(void)printf("ctr-gpu-hook %s\n", ctr_gpu_version());
	return fclose(stdout) ? message_error("write standard output", -errno) : 0;
}

int main(int argc, char **argv)
{
	struct arguments arguments;
	const char *step;
	int r;

	/* The runtime's environment and descriptors are for the one that it becomes. */
	if (runtime_is_called(argv[0]))
		return runtime_main(argc, argv);
	r = sanitise(&step);
	if (r)
		return message_error(step, r);
	if (cdi_hook_is_called(argv[0]))
		return cdi_hook_main(argv);
	if (!arguments_parse(argc, argv, &arguments))
		return EXIT_STATUS_USAGE;
	return arguments.version || arguments.help ? hook_print_text(&arguments) : hook_run_stage(&arguments);
}
