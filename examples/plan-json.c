/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Prints what a container would get, as JSON. The arguments are the environment of its process:
 *
 *	cc -o plan-json plan-json.c $(pkg-config --cflags --libs ctr-gpu)
 *	./plan-json NVIDIA_VISIBLE_DEVICES=0 NVIDIA_DRIVER_CAPABILITIES=compute,video
 */

#include <stdio.h>
#include <stdlib.h>

#include <ctr-gpu.h>

/* All that a plan is made of; what is NULL is released as nothing. */
struct objects {
	struct ctr_gpu_context *context;
	struct ctr_gpu_request *request;
	struct ctr_gpu_host *host;
	struct ctr_gpu_plan *plan;
};

static void warn(void *user, enum ctr_gpu_log_level level, const char *text)
{
	(void)user;
	if (level == CTR_GPU_LOG_WARNING)
		fprintf(stderr, "plan-json: warning: %s\n", text);
}

static int make_plan(struct objects *objects, const char *const *environment)
{
	int result;

	ctr_gpu_context_set_log(objects->context, warn, NULL);
	result = ctr_gpu_context_load_config(objects->context, NULL);
	if (!result)
		result = ctr_gpu_request_new(objects->context, &objects->request);
	if (!result)
		result = ctr_gpu_request_read_environment(objects->request, environment);
	/* The host is looked at for containers only that ask for something. */
	if (result || ctr_gpu_request_is_void(objects->request))
		return result;
	result = ctr_gpu_host_new(objects->context, &objects->host);
	if (!result)
		result = ctr_gpu_plan_new(objects->context, objects->request, objects->host, &objects->plan);
	return result;
}

int main(int argc, char **argv)
{
	struct objects objects = {0};
	int result;

	(void)argc;
	if (ctr_gpu_context_new(&objects.context) < 0)
		return EXIT_FAILURE;
	result = make_plan(&objects, (const char *const *)(argv + 1));
	if (!result && objects.plan)
		result = ctr_gpu_plan_write(objects.plan, CTR_GPU_FORMAT_JSON, stdout);
	if (result)
		fprintf(stderr, "plan-json: [%s] %s\n", ctr_gpu_error_name(result), ctr_gpu_context_message(objects.context));
	ctr_gpu_plan_unref(objects.plan);
	ctr_gpu_host_unref(objects.host);
	ctr_gpu_request_unref(objects.request);
	ctr_gpu_context_unref(objects.context);
	return result ? EXIT_FAILURE : EXIT_SUCCESS;
}
