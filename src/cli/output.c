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

#include "base/print.h"
#include "lib/context.h"
#include "system/own_programs.h"

static const char *program = "ctr-gpu";
static const char *(*error_class)(int r);
static bool for_programs;

/* Why writing to standard output failed, if that was noticed before the end. */
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
	/* A user who closes a pipe early wants no message; a script sees the status. */
	if (lost_by != EPIPE) {
		errno = lost_by;
		output_note(lost_by ? "cannot write standard output: %m"
				    : "cannot write standard output: some of it was lost");
	}
	_exit(EXIT_STATUS_FAILURE);
}

void output_guard(void)
{
	int fd;

	/* Read-only, so that a stream that the caller closed stays unusable. open(2) takes the lowest free number. */
	do
		fd = open("/dev/null", O_RDONLY);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		(void)close(fd);
	/* If the reader has gone, the write fails and check_output() says so; the program is not killed. */
	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGXFSZ, SIG_IGN);
	(void)atexit(check_output);
}

void output_set_program(const char *name, const char *(*class_of)(int r))
{
	program = name;
	error_class = class_of;
}

void output_set_json(bool json)
{
	for_programs = json;
}

/* A program is told of the first failure, and reads one object. */
static void output_write_json(const char *name, const struct err *err)
{
	static bool written;

	if (!for_programs || written)
		return;
	written = true;
	(void)print_write_json(json_pack("{s:s, s:{s:s?, s:s, s:s?}}", "version", CTR_GPU_VERSION, "error", "id", name,
					 "text", err->text, "advice", err->advice[0] ? err->advice : NULL),
			       stdout);
}

/* Behind the sentence, which has no newline yet. */
static void output_write_advice(const struct err *err)
{
	const char *line = err->advice;

	for (size_t length; *line; line += length + (line[length] == '\n')) {
		length = strcspn(line, "\n");
		(void)fprintf(stderr, "\n    %.*s", (int)length, line);
	}
	(void)fputc('\n', stderr);
}

const char *output_name(void)
{
	return program;
}

static void output_print_message(const struct err *err)
{
	(void)fprintf(stderr, "%s: %s", program, err->text);
	output_write_advice(err);
}

int output_print_error(const struct err *err)
{
	output_write_json(NULL, err);
	output_print_message(err);
	return EXIT_STATUS_FAILURE;
}

static void output_collect(struct err *ret, const char *format, va_list arguments)
	__attribute__((format(printf, 2, 0)));

static void output_collect(struct err *ret, const char *format, va_list arguments)
{
	err_write_list(ret, strstr(format, "%m") ? -errno : 0, format, arguments);
}

int output_print(const char *format, ...)
{
	va_list arguments;
	struct err err;

	va_start(arguments, format);
	output_collect(&err, format, arguments);
	va_end(arguments);
	return output_print_error(&err);
}

void output_note(const char *format, ...)
{
	va_list arguments;
	struct err err;

	va_start(arguments, format);
	output_collect(&err, format, arguments);
	va_end(arguments);
	output_print_message(&err);
}

int output_no_memory(void)
{
	return output_print("out of memory");
}

int output_finish(int r)
{
	if (r == -ENOMEM)
		return output_no_memory();
	if (r < 0)
		lost_by = errno;
	return r < 0 ? EXIT_STATUS_FAILURE : 0;
}

int output_error(const struct ctr_gpu_context *context, int r)
{
	const char *name = ctr_gpu_error_name(r);
	const struct err *err = &context->err;

	if (ferror(stdout)) {
		lost_by = errno;
		return EXIT_STATUS_FAILURE; /* check_output() will say it */
	}
	output_write_json(name, err);
	if (error_class)
		(void)fprintf(stderr, "%s: %s: %s [%s]", program, error_class(r), err->text, name);
	else
		(void)fprintf(stderr, "%s: [%s] %s", program, name, err->text);
	output_write_advice(err);
	if (error_class)
		return EXIT_STATUS_FAILURE;

	switch (r) {
	case CTR_GPU_E_BAD_ARGUMENT:
	case CTR_GPU_E_BAD_REQUIREMENT:
	case CTR_GPU_E_UNKNOWN_CAPABILITY:
		return EXIT_STATUS_USAGE;
	default:
		return EXIT_STATUS_FAILURE;
	}
}

/* ---- paths ---- */

char *path_absolute(const char *path)
{
	char *directory, *absolute = NULL;

	if (path[0] == '/')
		return strdup(path);
	directory = get_current_dir_name();
	if (directory && asprintf(&absolute, "%s/%s", directory, path) < 0)
		absolute = NULL;
	free(directory);
	return absolute;
}

char *path_of_program(const char *name)
{
	char *path = own_programs_beside(name);

	/* Packages are also removed from trees without a mounted /proc. */
	if (!path && asprintf(&path, "/usr/bin/%s", name) < 0)
		return NULL;
	return path;
}
