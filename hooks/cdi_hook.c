/* SPDX-License-Identifier: Apache-2.0 */

#include "internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <ctr-gpu.h>

#include "process/phase.h"
#include "process/sanitise.h"

enum { STATE_DEADLINE_S = 10 };

bool cdi_hook_is_called(const char *program)
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
		return report_error_error("give up capabilities", r);
	r = ctr_gpu_cdi_run_hook(call->context, call->arguments, call->state, call->size);

	return r ? report_error_failure(call->context, r) : 0;
}

static int cdi_hook_serve(struct call *call)
{
	/* Engines show a hook's standard error only if the hook fails; then a warning may be the reason. */
	struct trace_echo echo = {.file = stderr, .warnings_only = true};
	int r, exit_status;

	if (ctr_gpu_context_new(&call->context) < 0)
		return report_error_error("begin", -ENOMEM);
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

int cdi_hook_main(char **argv)
{
	struct call call = {.arguments = (const char *const *)argv + (argv[0] ? 1 : 0)};
	int r;

	trace_begin("nvidia-cdi-hook");
	if (argv[0] && argv[1] && (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-v") == 0)) {
		(void)printf("nvidia-cdi-hook of ctr-gpu %s\n", ctr_gpu_version());
		return report_error_end_output();
	}
	report_error_init();
	deadline_set(STATE_DEADLINE_S,
		     "nvidia-cdi-hook: [ETIMEDOUT] the container's state did not arrive on standard input; container "
		     "engines write it there");
	r = state_read(&call.state, &call.size);
	if (r)
		return report_error_error("read the container's state from standard input", r);
	deadline_set(0, "");
	return cdi_hook_serve(&call);
}
