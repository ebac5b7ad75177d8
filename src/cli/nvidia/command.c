/* SPDX-License-Identifier: Apache-2.0 */

/* What the commands share: the classes of errors, and how each begins. */

#include "cli/nvidia/nvidia.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/output.h"
#include "cli/verbs.h"
#include "lib/context.h"
#include "model/adapter.h"

/* ---- errors ---- */

/*
 * The first words of a message are the step that failed, and that is what people search logs for; NVIDIA's program has
 * them from where it is, this one from the error. "ldcache error" does not occur, as ldconfig is not run.
 */
static const struct {
	int code;
	const char *class;
} classes[] = {
	{CTR_GPU_E_NO_DEVICE, "initialization error"},      {CTR_GPU_E_NO_ADAPTER, "initialization error"},
	{CTR_GPU_E_DRIVER_TOO_OLD, "initialization error"}, {CTR_GPU_E_NO_DRIVER_STORE, "initialization error"},
	{CTR_GPU_E_DRIVER_LIBRARY, "initialization error"}, {CTR_GPU_E_DRIVER_TIMEOUT, "initialization error"},
	{CTR_GPU_E_BAD_CONFIG, "initialization error"},     {CTR_GPU_E_UNKNOWN_DEVICE, "device error"},
	{CTR_GPU_E_UNKNOWN_CAPABILITY, "input error"},      {CTR_GPU_E_BAD_ARGUMENT, "input error"},
	{CTR_GPU_E_REQUIREMENT, "requirement error"},       {CTR_GPU_E_BAD_REQUIREMENT, "requirement error"},
	{CTR_GPU_E_CONTAINER_RUNNING, "container error"},   {CTR_GPU_E_BAD_ROOTFS, "container error"},
	{CTR_GPU_E_NO_CGROUP, "container error"},           {CTR_GPU_E_NO_PERMISSION, "permission error"},
	{CTR_GPU_E_ROOTFS_READ_ONLY, "mount error"},        {CTR_GPU_E_KERNEL_TOO_OLD, "mount error"},
};

static const char *now_failing = "initialization error";

void nvidia_begin(const char *class)
{
	now_failing = class;
}

const char *nvidia_class_of(int r)
{
	for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++)
		if (classes[i].code == r)
			return classes[i].class;
	return now_failing;
}

void nvidia_input_error(const char *format, ...)
{
	va_list arguments;

	(void)fputs(NVIDIA_NAME ": input error: ", stderr);
	va_start(arguments, format);
	(void)vfprintf(stderr, format, arguments);
	va_end(arguments);
	(void)fputc('\n', stderr);
	exit(EXIT_STATUS_FAILURE);
}

/* ---- how a command begins ---- */

void nvidia_parse(const struct argp *argp, int argc, char **argv, void *input)
{
	error_t error = argp_parse(argp, argc, argv, 0, NULL, input);

	if (error)
		nvidia_input_error("cannot read the command line: %s", strerror(error));
}

void nvidia_take_mig(const char *option, const char *value, unsigned right, unsigned *rights)
{
	if (strcmp(value, "all") != 0)
		nvidia_input_error("--%s is 'all', not '%s'", option, value);
	*rights |= right;
}

int nvidia_open(struct session *session, const struct nvidia *nvidia)
{
	_cleanup_load_ struct load load = {0};
	int r;

	session->mute = true;
	r = session_open(session, &nvidia->globals);
	if (r)
		return r;
	for (size_t i = 0; nvidia->ignored[i]; i++)
		session_log(session, "%s is not needed", nvidia->ignored[i]);
	/*
	 * A failure is not an error: in a user namespace no process can load modules, and the later steps report what
	 * is missing.
	 */
	if (nvidia->load_kmods && (r = load_run(session, (struct load_options){0}, false, &load)))
		session_log(session, "--load-kmods: [%s] %s", ctr_gpu_error_name(r), session->context->err.text);
	return 0;
}

int nvidia_plan(struct session *session, const struct request_options *request)
{
	struct request_options words = *request;

	nvidia_begin("detection error");
	words.domain = DOMAIN_NVIDIA;
	return request_plan(session, &words);
}
