/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/session.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "cli/output.h"
#include "process/sanitise.h"

void session_close(struct session *session)
{
	session->cdi = ctr_gpu_cdi_report_unref(session->cdi);
	session->container = ctr_gpu_container_unref(session->container);
	session->plan = ctr_gpu_plan_unref(session->plan);
	session->host = ctr_gpu_host_unref(session->host);
	session->request = ctr_gpu_request_unref(session->request);
	session->context = ctr_gpu_context_unref(session->context);
	if (session->log && fclose(session->log))
		(void)output_print("the log is not complete: %m");
	session->log = NULL;
}

static void session_write_line(void *user, enum ctr_gpu_log_level level, const char *text)
{
	const struct session *session = user;

	if (level == CTR_GPU_LOG_WARNING && !session->mute)
		(void)fprintf(stderr, "%s: warning: %s\n", output_name(), text);
	if (session->debug && (session->log || session->mute || level == CTR_GPU_LOG_DEBUG))
		(void)fprintf(session->log ? session->log : stderr, "%s: %s: %s\n", output_name(),
			      level == CTR_GPU_LOG_WARNING ? "warning" : "debug", text);
}

void session_log(const struct session *session, const char *format, ...)
{
	va_list arguments;
	char *text;

	va_start(arguments, format);
	if (vasprintf(&text, format, arguments) < 0)
		text = NULL;
	va_end(arguments);
	if (text)
		session_write_line((void *)session, CTR_GPU_LOG_DEBUG, text);
	free(text);
}

static FILE *session_open_log(const char *path)
{
	int fd = fd_open_log(path);

	errno = fd < 0 ? -fd : 0;
	return fd < 0 ? NULL : fdopen(fd, "a");
}

int session_open(struct session *session, const struct global_options *globals)
{
	int r;

	if (ctr_gpu_context_new(&session->context) < 0)
		return output_no_memory();
	session->debug = globals->debug;
	if (globals->debug_file && !(session->log = session_open_log(globals->debug_file)))
		return output_print("cannot write the log to %s: %m", globals->debug_file);
	ctr_gpu_context_set_log(session->context, session_write_line, session);
	r = ctr_gpu_context_load_config(session->context, globals->config);
	if (r && !session->lenient)
		return session_check(session, r);
	if (globals->inventory_given)
		ctr_gpu_context_set_inventory(session->context, globals->inventory);
	if (globals->timeout_ms)
		ctr_gpu_context_set_driver_timeout(session->context, globals->timeout_ms);
	if (globals->driver_root)
		return session_check(session, ctr_gpu_context_set_driver_root(session->context, globals->driver_root));
	return 0;
}

int session_enter(enum phase phase)
{
	errno = -phase_enter(phase);
	return errno ? output_print("cannot give up capabilities: %m") : 0;
}

void session_run_in_child(struct session *session, int (*work)(void *user), void *user)
{
	int r, exit_status;

	r = ctr_gpu_run_in_child(session->context, work, user, &exit_status);
	if (r) {
		exit_status = output_error(session->context, r);
		deadline_let_go();
	}
	(void)fflush(stdout);
	/* The child has closed standard output, whose descriptor is the same. */
	_exit(exit_status);
}

int session_check(const struct session *session, int r)
{
	return r ? output_error(session->context, r) : 0;
}
