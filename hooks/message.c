/* SPDX-License-Identifier: Apache-2.0 */

#include "message.h"

#include "trace.h"

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

enum { MESSAGE_MAX = 2048 };

static int system_log = -1;

static void message_open_system_log(void)
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

void message_init(void)
{
	struct stat st;

	/* Number 1:3 is the null device's everywhere (Documentation/admin-guide/devices.txt of Linux). */
	if (fstat(STDERR_FILENO, &st) < 0 || !S_ISCHR(st.st_mode) || st.st_rdev != makedev(1, 3))
		return;
	message_open_system_log();
	if (system_log < 0)
		trace_open_last();
}

static void message_log_system(int priority, const char *text)
{
	char datagram[MESSAGE_MAX + 16];

	if (system_log < 0)
		return;
	(void)snprintf(datagram, sizeof(datagram), "<%d>%s", LOG_DAEMON | priority, text);
	(void)send(system_log, datagram, strlen(datagram), MSG_NOSIGNAL);
}

static int message_emit(const char *text)
{
	(void)fputs(text, stderr);
	message_log_system(LOG_ERR, text);
	trace_write("error", text);
	trace_keep_last(text);
	return EXIT_FAILURE;
}

int message_error(const char *what, int error)
{
	char text[MESSAGE_MAX];

	(void)snprintf(text, sizeof(text), "%s: [%s] cannot %s: %s\n", trace_program(), ctr_gpu_error_name(error), what,
		       strerror(-error));
	return message_emit(text);
}

/* fclose(3) of musl does not tell of what failed before it. */
int message_end_output(void)
{
	bool lost = ferror(stdout);

	if (fclose(stdout) == 0 && !lost)
		return 0;
	return message_error("write standard output", errno ? -errno : -EIO);
}

int message_failure(const struct ctr_gpu_context *context, int r)
{
	const char *from = ctr_gpu_context_message(context);
	char text[MESSAGE_MAX];
	size_t length;

	length = (size_t)snprintf(text, sizeof(text), "%s: [%s] ", trace_program(), ctr_gpu_error_name(r));
	for (; *from && length < sizeof(text) - sizeof("\n    \n"); from++) {
		text[length++] = *from;
		if (*from == '\n')
			length = (size_t)(stpcpy(text + length, "    ") - text);
	}
	(void)strcpy(text + length, "\n");
	return message_emit(text);
}

int message_go_without(struct ctr_gpu_context *context, struct ctr_gpu_request *request, enum ctr_gpu_door door,
		       bool quiet, int r, struct ctr_gpu_plan **ret_plan)
{
	const enum ctr_gpu_on_missing policy = ctr_gpu_request_on_missing(request, door, r);
	const char *message = ctr_gpu_context_message(context);
	char text[MESSAGE_MAX];

	if (policy == CTR_GPU_ON_MISSING_FAIL)
		return r;
	if (policy == CTR_GPU_ON_MISSING_WARN && !quiet) {
		if (system_log < 0)
			message_open_system_log();
		(void)snprintf(text, sizeof(text),
			       "%s: warning: [%s] %.*s; a container that asks for GPUs starts without\n",
			       trace_program(), ctr_gpu_error_name(r), (int)strcspn(message, "\n"), message);
		message_log_system(LOG_WARNING, text);
	}
	r = ctr_gpu_request_set_devices(request, "void");
	return r ? r : ctr_gpu_plan_new(context, request, NULL, ret_plan);
}
