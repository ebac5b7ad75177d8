/* SPDX-License-Identifier: Apache-2.0 */

/*
 * ctr-gpu-runtime: stands in front of an OCI runtime. Before a container is created, it writes into the container's
 * configuration the GPUs that the container asks for; then, and for any other command at once, it becomes the runtime. It
 * stays in the environment, directory and descriptors that the engine gave it, since they are the runtime's.
 */

#include "runtime.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <ctr-gpu.h>

#include "../arguments.h"
#include "../message.h"
#include "../trace.h"
#include "command_line.h"
#include "failure.h"
#include "process/deadline.h"
#include "real.h"

struct shim {
	struct command_line line;
	bool dry_run;
	char *runtime; /* to become */
	struct ctr_gpu_context *context;
	struct ctr_gpu_bundle *bundle;
	struct ctr_gpu_request *request;
	struct ctr_gpu_host *host;
	struct ctr_gpu_plan *plan;
};

static void shim_close(struct shim *shim)
{
	(void)ctr_gpu_plan_unref(shim->plan);
	(void)ctr_gpu_host_unref(shim->host);
	(void)ctr_gpu_request_unref(shim->request);
	(void)ctr_gpu_bundle_unref(shim->bundle);
	(void)ctr_gpu_context_unref(shim->context);
	free(shim->runtime);
}

static void write_remark(void *user, enum ctr_gpu_log_level level, const char *text)
{
	(void)user;
	trace_write(level == CTR_GPU_LOG_WARNING ? "warning" : "debug", text);
}

static int make_plan(struct shim *shim)
{
	int result;

	result = ctr_gpu_host_new(shim->context, &shim->host);
	if (!result)
		result = ctr_gpu_plan_new(shim->context, shim->request, shim->host, &shim->plan);
	if (!result)
		result = ctr_gpu_plan_fit_bundle(shim->plan, shim->bundle);
	return result;
}

static int apply_plan(struct shim *shim)
{
	char *hook = real_sibling("ctr-gpu-hook");
	int result = hook ? ctr_gpu_bundle_set_hook(shim->bundle, hook) : 0;

	free(hook);
	return result ? result : ctr_gpu_plan_apply_to_bundle(shim->context, shim->plan, shim->bundle);
}

static const char *bundle_of(const struct shim *shim)
{
	return shim->line.bundle ? shim->line.bundle : ".";
}

static int read_bundle(struct shim *shim)
{
	int result;

	result = ctr_gpu_bundle_new(shim->context, bundle_of(shim), shim->line.config, &shim->bundle);
	if (!result)
		result = ctr_gpu_request_new(shim->context, &shim->request);
	if (!result)
		result = ctr_gpu_request_read_bundle(shim->request, shim->bundle);
	return result;
}

/* Why there is no plan, or 0 where the container starts without the GPUs that it asks for. */
static int go_without(struct shim *shim, int result)
{
	const enum ctr_gpu_on_missing policy = ctr_gpu_request_on_missing(shim->request, CTR_GPU_DOOR_RUNTIME, result);

	if (policy == CTR_GPU_ON_MISSING_FAIL)
		return result;
	if (policy == CTR_GPU_ON_MISSING_WARN && !shim->dry_run)
		message_missing("ctr-gpu-runtime", shim->context, result);
	result = ctr_gpu_request_set_devices(shim->request, "void");
	return result ? result : ctr_gpu_plan_new(shim->context, shim->request, NULL, &shim->plan);
}

static int change_bundle(void *user)
{
	struct shim *shim = user;
	int result = make_plan(shim);

	if (result)
		result = go_without(shim, result);
	if (!result && shim->dry_run)
		result = ctr_gpu_plan_write(shim->plan, CTR_GPU_FORMAT_JSON, stdout);
	else if (!result && !ctr_gpu_request_is_void(shim->request))
		result = apply_plan(shim);
	return result ? failure_tell(&shim->line, result, ctr_gpu_context_message(shim->context)) : 0;
}

/* The host is looked at only for a container that asks for something. Return: the exit status of a failure; 0. */
static int give_gpus(struct shim *shim)
{
	int result = read_bundle(shim), status;

	/* The runtime has words of its own for a bundle that is not there or makes no sense. */
	if (result && !shim->dry_run && (result == -ENOENT || !ctr_gpu_bundle_may_ask(bundle_of(shim), shim->line.config)))
		return 0;
	if (!result && ctr_gpu_request_is_void(shim->request) && !shim->dry_run)
		return 0;
	if (!result)
		result = ctr_gpu_run_in_child(shim->context, change_bundle, shim, &status);
	if (!result)
		return status;
	status = failure_tell(&shim->line, result, ctr_gpu_context_message(shim->context));
	deadline_let_go();
	return status;
}

/*
 * A container must be stoppable with a mistake in our settings, so only its creation depends on all of them. But another runtime
 * than the one that it was created with would say that there is no such container.
 */
static int load_config(struct shim *shim)
{
	int result = ctr_gpu_context_load_config(shim->context, NULL);

	if (shim->line.creates)
		trace_open("ctr-gpu-runtime", ctr_gpu_context_log(shim->context));
	return shim->line.creates || !ctr_gpu_context_runtime(shim->context, 0) ? result : 0;
}

static int find_runtime(struct shim *shim)
{
	int result = real_find(shim->context, &shim->runtime);

	return result ? failure_tell(&shim->line, result,
				     "no OCI runtime was found to start the container with.\n"
				     "Install runc or crun, or name yours under \"runtimes\" in /etc/ctr-gpu/config.json.") : 0;
}

static int become_runtime(struct shim *shim, char **argv)
{
	argv[0] = shim->runtime;
	(void)execv(shim->runtime, argv);
	return failure_tell(&shim->line, -errno, "the OCI runtime cannot be executed.");
}

static int serve(struct shim *shim, char **argv)
{
	int result, status = 0;

	result = ctr_gpu_context_new(&shim->context);
	if (result)
		return failure_tell(&shim->line, result, "no memory");
	ctr_gpu_context_set_log(shim->context, write_remark, NULL);
	result = load_config(shim);
	if (result)
		return failure_tell(&shim->line, result, ctr_gpu_context_message(shim->context));
	if (!shim->dry_run)
		status = find_runtime(shim);
	if (!status && shim->line.creates)
		status = give_gpus(shim);
	return status || shim->dry_run ? status : become_runtime(shim, argv);
}

bool runtime_is_called(const char *program)
{
	return is_called(program, "ctr-gpu-runtime") || is_called(program, "nvidia-container-runtime");
}

int runtime_main(int argc, char **argv)
{
	__attribute__((cleanup(shim_close))) struct shim shim = {0};

	if (argc > 1 && strcmp(argv[1], "--dry-run") == 0) {
		shim.dry_run = true;
		argv++;
	}
	command_line_read(argv + (argc > 0), &shim.line);
	if (shim.dry_run && !shim.line.creates)
		return failure_tell(&shim.line, CTR_GPU_E_BAD_ARGUMENT, "--dry-run goes in front of create or run.");
	return serve(&shim, argv);
}
