/* SPDX-License-Identifier: Apache-2.0 */

#include "internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <syslog.h>
#include <unistd.h>

enum { REPORT_ERROR_MAX = 2048 };

static int system_log = -1;

static void report_error_open_system_log(void)
{
	const struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "/dev/log"};
	int fd;

	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0) {
		system_log = fd;
		return;
	}
	if (fd >= 0)
		(void)close(fd);
}

void report_error_init(void)
{
	struct stat st;

	/* Number 1:3 is the null device's everywhere (Documentation/admin-guide/devices.txt of Linux). */
	if (fstat(STDERR_FILENO, &st) < 0 || !S_ISCHR(st.st_mode) || st.st_rdev != makedev(1, 3))
		return;
	report_error_open_system_log();
	if (system_log < 0)
		trace_open_last();
}

static void report_error_log_system(int priority, const char *text)
{
	char datagram[REPORT_ERROR_MAX + 16];

	if (system_log < 0)
		return;
	(void)snprintf(datagram, sizeof(datagram), "<%d>%s", LOG_DAEMON | priority, text);
	(void)send(system_log, datagram, strlen(datagram), MSG_NOSIGNAL);
}

static int report_error_emit(const char *text)
{
	(void)fputs(text, stderr);
	report_error_log_system(LOG_ERR, text);
	trace_write("error", text);
	trace_keep_last(text);
	return EXIT_FAILURE;
}

int report_error_error(const char *what, int error)
{
	char text[REPORT_ERROR_MAX];

	(void)snprintf(text, sizeof(text), "%s: [%s] cannot %s: %s\n", trace_program(), ctr_gpu_error_name(error), what,
		       strerror(-error));
	return report_error_emit(text);
}

/* fclose(3) of musl does not tell of what failed before it. */
int report_error_end_output(void)
{
	bool lost = ferror(stdout);

	if (fclose(stdout) == 0 && !lost)
		return 0;
	return report_error_error("write standard output", errno ? -errno : -EIO);
}

int report_error_failure(const struct ctr_gpu_context *context, int r)
{
	const char *from = ctr_gpu_context_message(context);
	char text[REPORT_ERROR_MAX];
	size_t length;

	length = (size_t)snprintf(text, sizeof(text), "%s: [%s] ", trace_program(), ctr_gpu_error_name(r));
	for (; *from && length < sizeof(text) - sizeof("\n    \n"); from++) {
		text[length++] = *from;
		if (*from == '\n')
			length = (size_t)(stpcpy(text + length, "    ") - text);
	}
	(void)strcpy(text + length, "\n");
	return report_error_emit(text);
}

int report_error_go_without(struct ctr_gpu_context *context, struct ctr_gpu_request *request,
			    enum ctr_gpu_method method, bool quiet, int r, struct ctr_gpu_plan **ret_plan)
{
	const enum ctr_gpu_on_missing policy = ctr_gpu_request_on_missing(request, method, r);
	const char *message = ctr_gpu_context_message(context);
	char text[REPORT_ERROR_MAX];

	if (policy == CTR_GPU_ON_MISSING_FAIL)
		return r;
	if (policy == CTR_GPU_ON_MISSING_WARN && !quiet) {
		if (system_log < 0)
			report_error_open_system_log();
		(void)snprintf(text, sizeof(text),
			       "%s: warning: [%s] %.*s; a container that asks for GPUs starts without\n",
			       trace_program(), ctr_gpu_error_name(r), (int)strcspn(message, "\n"), message);
		report_error_log_system(LOG_WARNING, text);
	}
	r = ctr_gpu_request_set_devices(request, "void");
	return r ? r : ctr_gpu_plan_new(context, request, NULL, ret_plan);
}
