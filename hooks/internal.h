/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the hook's files share: its command line, the container's state, its trace and its messages.
 *
 * On the command line, engines give the name of a stage. The options are those of
 * nvidia-container-runtime-hook, since the hook can take its place; so they have one dash or two.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include <ctr-gpu.h>

enum stage {
	STAGE_CREATE,  /* prestart, createRuntime: the namespaces exist, nothing runs in them */
	STAGE_CLEAN,   /* poststop: it has ended */
	STAGE_IGNORED, /* poststart: there is nothing to do */
};

struct arguments {
	const char *const *all; /* as they were given, NULL-terminated */
	enum stage stage;
	const char *config; /* NULL: the usual file */
	bool debug;
	const char *debug_file; /* NULL: standard error */
	bool cdi;               /* --device was given: a CDI spec's hook */
	bool dry_run;
	bool version, help;
};

/** Writes the usage. */
void arguments_usage(FILE *file);

/* Explains mistakes on standard error. Return: whether the command line is valid. */
bool arguments_parse(int argc, char **argv, struct arguments *ret);

/** Whether @program, an argv[0], is called @name, wherever it is. */
bool arguments_is_called(const char *program, const char *name);

/* The state that the engine writes to its hooks' standard input. */

/**
 * state_read() - everything up to the end of standard input
 * @ret_text: the bytes, static
 *
 * Return: 0; -EFBIG if it is larger than a state can be; negative errno.
 */
int state_read(const char **ret_text, size_t *ret_size);

/*
 * The log that config.json turns on, since an administrator cannot edit the arguments of an engine's hooks. And the
 * last failure, for machines that log it nowhere else.
 */

enum { TRACE_TIME_SIZE = 32 };

/** Sets the program's name in messages, a constant. Until then it is ctr-gpu-hook. */
void trace_begin(const char *program);

/**
 * trace_open() - from now on, keep a log
 * @destination: of ctr_gpu_context_log(); NULL: none
 *
 * To be called before the mount namespace is changed. What cannot be opened is left alone: a container needs no log.
 */
void trace_open(const char *destination);

/* Where remarks of the library go besides the log. */
struct trace_echo {
	FILE *file; /* NULL: nowhere */
	bool warnings_only;
};

/** For ctr_gpu_context_set_log(). @user: struct trace_echo; NULL: the log alone. */
void trace_log(void *user, enum ctr_gpu_log_level level, const char *text);

/** Prints a line at once: what musl formats for standard error it writes in pieces, between which others may write. */
void trace_print_line(FILE *file, const char *format, ...) __attribute__((format(printf, 2, 3)));

/** The time as logs have it; empty where it is not known. */
void trace_write_time(char ret[TRACE_TIME_SIZE]);

/** One line, if there is a log. @kind: "debug", "warning" or "error". */
void trace_write(const char *kind, const char *text);

/*
 * What a failing hook has to say. Engines pass a hook's standard error on to the user, but not all of them: crun under
 * Podman lets it end in /dev/null. There the message goes to the system log; without one, to a file that the doctor
 * shows.
 */

/**
 * report_error_init() - find out where messages go
 *
 * To be called before the mount namespace is changed: in a container's, /dev/log is whatever the image says.
 */
void report_error_init(void);

/** Says what a step before the library's first failed at. @error: negative errno. Return: the exit status. */
int report_error_step(const char *what, int error);

/** Ends standard output. Return: the exit status: whether all that was printed has been written. */
int report_error_end_output(void);

/**
 * Says "ctr-gpu-hook: [E_NO_ADAPTER] …" for a result of the library, further lines indented. Return: the exit status.
 */
int report_error_failure(const struct ctr_gpu_context *context, int r);

/**
 * report_error_go_without() - let a container start without the GPUs that it asks for, where the settings say so
 * @quiet:    do not log the reason in the system's log
 * @r:        why planning failed; the context has the message
 * @ret_plan: a plan that does nothing; @request is void then, too
 *
 * Return: 0; @r if the container must not start; another result of the library.
 */
int report_error_go_without(struct ctr_gpu_context *context, struct ctr_gpu_request *request,
			    enum ctr_gpu_method method, bool quiet, int r, struct ctr_gpu_plan **ret_plan);
