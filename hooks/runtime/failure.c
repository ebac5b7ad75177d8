/* SPDX-License-Identifier: Apache-2.0 */

#include "failure.h"

#include "../trace.h"

#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { REPORT_ERROR_MAX = 2048 };

/* crun's logs may be "file:PATH", "syslog:ID" and "journald:ID" as well (src/libcrun/error.c). */
static FILE *failure_open_log(const char *log)
{
	const char *path = strncmp(log, "file:", 5) == 0 ? log + 5 : log;
	int fd = -1;

	if (strncmp(log, "syslog:", 7) != 0 && strncmp(log, "journald:", 9) != 0)
		fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0644);
	return fd < 0 ? NULL : fdopen(fd, "a");
}

/* containerd, Docker (go-runc, getLastRuntimeError()) and Podman show the last entry of the level "error". */
static void failure_write_log(FILE *file, bool as_json, const char *message)
{
	json_t *text = json_string(message);
	char *quoted = text ? json_dumps(text, JSON_ENCODE_ANY) : NULL, stamp[TRACE_TIME_SIZE];

	trace_write_time(stamp);
	if (quoted)
		trace_print_line(file,
				 as_json ? "{\"level\":\"error\",\"msg\":%s,\"time\":\"%s\"}\n"
					 : "level=error msg=%s time=\"%s\"\n",
				 quoted, stamp);
	free(quoted);
	json_decref(text);
}

int failure_tell(const struct command_line *line, int r, const char *text)
{
	char message[REPORT_ERROR_MAX];
	FILE *log;

	(void)snprintf(message, sizeof(message), "ctr-gpu-runtime: [%s] %s", ctr_gpu_error_name(r), text);
	trace_print_line(stderr, "%s\n", message);
	trace_write("error", message);
	log = line->log ? failure_open_log(line->log) : NULL;
	if (log) {
		failure_write_log(log, line->log_json, message);
		(void)fclose(log);
	}
	return EXIT_FAILURE;
}
