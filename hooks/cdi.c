/* SPDX-License-Identifier: Apache-2.0 */

#include "cdi.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <ctr-gpu.h>

#include "arguments.h"
#include "deadline.h"
#include "message.h"
#include "state.h"

enum { DEADLINE_S = 30 };

bool cdi_is_called(const char *program)
{
	return is_called(program, "nvidia-cdi-hook");
}

/* Engines show a hook's standard error only where it fails, and there a warning may be the reason. */
static void write_warning(void *user, enum ctr_gpu_log_level level, const char *text)
{
	(void)user;
	if (level == CTR_GPU_LOG_WARNING)
		(void)fprintf(stderr, "nvidia-cdi-hook: warning: %s\n", text);
}

static int run(const char *const *arguments, const char *state, size_t size)
{
	struct ctr_gpu_context *context;
	int result, status;

	if (ctr_gpu_context_new(&context) < 0)
		return message_error("begin", -ENOMEM);
	ctr_gpu_context_set_log(context, write_warning, NULL);
	result = ctr_gpu_cdi_run_hook(context, arguments, state, size);
	status = result ? message_failure(context, result) : 0;
	(void)ctr_gpu_context_unref(context);
	return status;
}

static bool asks_for_version(const char *argument)
{
	return argument && (strcmp(argument, "--version") == 0 || strcmp(argument, "-v") == 0);
}

int cdi_main(char **argv)
{
	const char *state;
	size_t size;
	int result;

	if (asks_for_version(argv[1])) {
		(void)printf("nvidia-cdi-hook of ctr-gpu %s\n", ctr_gpu_version());
		return fclose(stdout) ? message_error("write standard output", -errno) : 0;
	}
	message_init();
	deadline_set(DEADLINE_S, "nvidia-cdi-hook: [ETIMEDOUT] the container's state did not arrive on standard input, or the work took too long");
	result = state_read(&state, &size);
	if (result)
		return message_error("read the container's state from standard input", result);
	return run((const char *const *)argv + (argv[0] ? 1 : 0), state, size);
}
