/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Gives GPUs to a container that is being created: its first process is there, in namespaces of its own, and waits before
 * it enters its root directory, as a runtime has it wait while createRuntime hooks run.
 *
 *	cc -o give-gpus give-gpus.c $(pkg-config --cflags --libs ctr-gpu)
 *	./give-gpus 4711 /srv/containers/one/rootfs 0,1
 */

#include <stdio.h>
#include <stdlib.h>

#include <ctr-gpu.h>

static int give(struct ctr_gpu_context *context, pid_t pid, const char *rootfs, const char *devices)
{
	struct ctr_gpu_container *container = NULL;
	struct ctr_gpu_request *request = NULL;
	struct ctr_gpu_host *host = NULL;
	struct ctr_gpu_plan *plan = NULL;
	int result;

	result = ctr_gpu_request_new(context, &request);
	if (!result)
		result = ctr_gpu_request_set_devices(request, devices);
	if (!result)
		result = ctr_gpu_host_new(context, &host);
	if (!result)
		result = ctr_gpu_plan_new(context, request, host, &plan);
	if (!result)
		result = ctr_gpu_container_new(context, pid, rootfs, &container);
	/* All of it or nothing; and the last thing that this process does, for it is in the container's mount namespace then. */
	if (!result)
		result = ctr_gpu_plan_apply(context, plan, container);
	ctr_gpu_container_unref(container);
	ctr_gpu_plan_unref(plan);
	ctr_gpu_host_unref(host);
	ctr_gpu_request_unref(request);
	return result;
}

int main(int argc, char **argv)
{
	struct ctr_gpu_context *context;
	int result;

	if (argc < 3 || argc > 4) {
		fprintf(stderr, "usage: give-gpus PID ROOTFS [DEVICES]\n");
		return 2;
	}
	if (ctr_gpu_context_new(&context) < 0)
		return EXIT_FAILURE;
	result = ctr_gpu_context_load_config(context, NULL);
	if (!result)
		result = give(context, (pid_t)atoi(argv[1]), argv[2], argc == 4 ? argv[3] : "all");
	if (result)
		fprintf(stderr, "give-gpus: [%s] %s\n", ctr_gpu_error_name(result), ctr_gpu_context_message(context));
	ctr_gpu_context_unref(context);
	return result ? EXIT_FAILURE : EXIT_SUCCESS;
}
