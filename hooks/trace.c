/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a hook says: to its log file, the journal and standard error, and to the file that `ctr-gpu doctor` looks for.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#include "base/paths.h"
#include "internal.h"

/* ---- trace ---- */

enum { LINE_SIZE = 4096 };

static const char folder[] = PATH_RUN, last[] = "last-failure", new_last[] = "last-failure.new";

static const char *own_name = "ctr-gpu-hook";
static int log_file = -1, journal = -1, folder_fd = -1;

/* Both take datagrams; systemd-journald(8) has the first, every other log daemon the second. */
static int trace_open_journal(void)
{
	static const struct sockaddr_un addresses[] = {
		{.sun_family = AF_UNIX, .sun_path = "/run/systemd/journal/dev-log"},
		{.sun_family = AF_UNIX, .sun_path = "/dev/log"},
	};
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	for (size_t i = 0; fd >= 0 && i < sizeof(addresses) / sizeof(addresses[0]); i++)
		if (connect(fd, (const struct sockaddr *)&addresses[i], sizeof(addresses[i])) == 0)
			return fd;
	if (fd >= 0)
		(void)close(fd);
	return -1;
}

/* O_NONBLOCK: a FIFO without a reader would block open(2). */
static int trace_open_file(const char *path)
{
	int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0640);
	struct stat st;

	if (fd < 0 || (fstat(fd, &st) == 0 && S_ISREG(st.st_mode)))
		return fd;
	(void)close(fd);
	return -1;
}

void trace_begin(const char *program)
{
	own_name = program;
}

void trace_open(const char *destination)
{
	if (!destination)
		return;
	if (destination[0] == '/')
		log_file = trace_open_file(destination);
	else
		journal = trace_open_journal();
}

void trace_write_time(char ret[TRACE_TIME_SIZE])
{
	time_t now = time(NULL);
	struct tm utc;

	if (!gmtime_r(&now, &utc) || strftime(ret, TRACE_TIME_SIZE, "%FT%TZ", &utc) == 0)
		ret[0] = '\0';
}

void trace_write(const char *kind, const char *text)
{
	int priority = kind[0] == 'd' ? LOG_DEBUG : kind[0] == 'w' ? LOG_WARNING : LOG_ERR, pid = (int)getpid();
	char line[LINE_SIZE], stamp[TRACE_TIME_SIZE];

	while (*text && (log_file >= 0 || journal >= 0)) {
		int length = (int)strcspn(text, "\n");

		if (log_file >= 0) {
			/* Of several processes, each line is one write(2). */
			trace_write_time(stamp);
			(void)snprintf(line, sizeof(line) - 1, "%s %s[%d]: %s: %.*s", stamp, own_name, pid, kind,
				       length, text);
			(void)strcat(line, "\n");
			(void)!write(log_file, line, strlen(line));
		} else {
			(void)snprintf(line, sizeof(line), "<%d>%s[%d]: %.*s", LOG_DAEMON | priority, own_name, pid,
				       length, text);
			(void)send(journal, line, strlen(line), MSG_NOSIGNAL);
		}
		text += length + (text[length] == '\n');
	}
}

void trace_print_line(FILE *file, const char *format, ...)
{
	va_list arguments;
	char *line;
	int length;

	va_start(arguments, format);
	length = vasprintf(&line, format, arguments);
	va_end(arguments);
	if (length < 0)
		return;
	(void)fputs(line, file);
	free(line);
}

void trace_log(void *user, enum ctr_gpu_log_level level, const char *text)
{
	const char *kind = level == CTR_GPU_LOG_WARNING ? "warning" : "debug";
	const struct trace_echo *echo = user;

	trace_write(kind, text);
	if (echo && echo->file && (level == CTR_GPU_LOG_WARNING || !echo->warnings_only))
		trace_print_line(echo->file, "%s: %s: %s\n", own_name, kind, text);
}

/* From now on, keep a failure where `ctr-gpu doctor` finds it. For root alone: /run is the system's. */
static void trace_open_last(void)
{
	struct stat st;
	int fd;

	if (geteuid() != 0 || (mkdir(folder, 0700) < 0 && errno != EEXIST))
		return;
	fd = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return;
	if (fstat(fd, &st) == 0 && st.st_uid == 0 && !(st.st_mode & (S_IWGRP | S_IWOTH)))
		folder_fd = fd;
	else
		(void)close(fd);
}

/* The failure, if trace_open_last() was called. */
static void trace_keep_last(const char *text)
{
	char stamp[TRACE_TIME_SIZE];
	int fd;

	if (folder_fd < 0)
		return;
	fd = openat(folder_fd, new_last, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
	if (fd < 0)
		return;
	trace_write_time(stamp);
	(void)dprintf(fd, "%s %.*s", stamp, LINE_SIZE, text);
	(void)close(fd);
	(void)renameat(folder_fd, new_last, folder_fd, last);
}

/* ---- errors ---- */

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

int report_error_step(const char *what, int error)
{
	char text[REPORT_ERROR_MAX];

	(void)snprintf(text, sizeof(text), "%s: [%s] cannot %s: %s\n", own_name, ctr_gpu_error_name(error), what,
		       strerror(-error));
	return report_error_emit(text);
}

/* fclose(3) of musl does not tell of what failed before it. */
int report_error_end_output(void)
{
	bool lost = ferror(stdout);

	if (fclose(stdout) == 0 && !lost)
		return 0;
	return report_error_step("write standard output", errno ? -errno : -EIO);
}

int report_error_failure(const struct ctr_gpu_context *context, int r)
{
	const char *from = ctr_gpu_context_message(context);
	char text[REPORT_ERROR_MAX];
	size_t length;

	length = (size_t)snprintf(text, sizeof(text), "%s: [%s] ", own_name, ctr_gpu_error_name(r));
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
			       "%s: warning: [%s] %.*s; a container that asks for GPUs starts without\n", own_name,
			       ctr_gpu_error_name(r), (int)strcspn(message, "\n"), message);
		report_error_log_system(LOG_WARNING, text);
	}
	r = ctr_gpu_request_set_devices(request, "void");
	return r ? r : ctr_gpu_plan_new(context, request, NULL, ret_plan);
}
