/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/output.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Why standard output lost something, where the library met it first. */
static int lost_by;

static void check_output(void)
{
	bool lost = ferror(stdout);

	errno = lost_by;
	/* It fails for an old error, too, and leaves errno alone then. */
	if (fclose(stdout) != 0)
		lost_by = errno;
	else if (!lost)
		return;
	/* Who closes a pipe has seen enough and wants no message; the status still tells a script. */
	if (lost_by != EPIPE)
		(void)fprintf(stderr, "ctr-gpu: cannot write standard output: %s\n",
			      lost_by ? strerror(lost_by) : "some of it was lost");
	_exit(EXIT_STATUS_FAILURE);
}

void output_guard(void)
{
	int fd;

	/* The wrong way round: what the caller closed stays unusable. open(2) takes the lowest free number. */
	do
		fd = open("/dev/null", O_RDONLY);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		(void)close(fd);
	/* A reader that has gone is an error here too, and no silent end: check_output(). */
	(void)signal(SIGPIPE, SIG_IGN);
	(void)atexit(check_output);
}

int output_complain(const char *format, ...)
{
	int error = errno;
	va_list arguments;

	(void)fputs("ctr-gpu: ", stderr);
	errno = error;
	va_start(arguments, format);
	(void)vfprintf(stderr, format, arguments);
	va_end(arguments);
	(void)fputc('\n', stderr);
	return EXIT_STATUS_FAILURE;
}

int output_error(const struct ctr_gpu_context *context, int result)
{
	const char *text = ctr_gpu_context_message(context);
	const char *newline;

	if (ferror(stdout)) {
		lost_by = errno;
		return EXIT_STATUS_FAILURE; /* check_output() will say it */
	}
	(void)fprintf(stderr, "ctr-gpu: [%s] ", ctr_gpu_error_name(result));
	for (; (newline = strchr(text, '\n')); text = newline + 1)
		(void)fprintf(stderr, "%.*s\n    ", (int)(newline - text), text);
	(void)fprintf(stderr, "%s\n", text);

	switch (result) {
	case CTR_GPU_E_BAD_ARGUMENT:
	case CTR_GPU_E_BAD_REQUIREMENT:
	case CTR_GPU_E_UNKNOWN_CAPABILITY:
		return EXIT_STATUS_USAGE;
	default:
		return EXIT_STATUS_FAILURE;
	}
}
