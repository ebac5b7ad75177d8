/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a check has to say: plain data, for a person's screen and for programs. A finding may close methods, by which
 * users ask an engine for a GPU; the summary follows from that and from nothing else.
 *
 * All of it is in one piece of memory, so that a process can fill it and another read it.
 */

#include <jansson.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "base/err.h"

enum severity {
	SEVERITY_OK,
	SEVERITY_NOTE,    /* worth knowing; nothing to do */
	SEVERITY_WARNING, /* works, but not all of it, or not for long */
	SEVERITY_PROBLEM, /* a container would not get a GPU that works */
	SEVERITIES,
};

/* Ways into a container. */
enum method {
	METHOD_GPUS,    /* --gpus */
	METHOD_HOOK,    /* NVIDIA_VISIBLE_DEVICES, by a hooks directory */
	METHOD_RUNTIME, /* a runtime "nvidia" */
	METHOD_CDI,     /* a CDI device */
	METHOD_CLI,     /* nvidia-container-cli, which the engine runs */
	METHODS,
};
#define METHOD(name) (1U << METHOD_##name)
#define ALL_METHODS (~0U)

extern const char *const method_names[METHODS];      /* "gpus", "hook", … */
extern const char *const severity_names[SEVERITIES]; /* "ok", "note", … */

enum { FINDINGS_MAX = 1024, FINDINGS_ENGINES_MAX = 16, FINDING_TEXT_MAX = 4096 };

struct finding {
	char id[48]; /* stable, "store.incomplete"; what is before the dot is the subject */
	enum severity severity;
	char *remedy;       /* NULL if there is nothing to do */
	const char *engine; /* by its id, ANY_ENGINE, or NULL: it is of no engine; as a problem it closes every method
			       there is */
	unsigned methods;   /* of that engine, that it closes: bits by enum method */
	char text[FINDING_TEXT_MAX]; /* and the remedy's, behind its NUL */
};

#define ANY_ENGINE "*"

/* An engine of this machine. */
struct host_engine {
	const char *id, *label;     /* "docker", "Docker" */
	char state[64];             /* " 28.1.1, running" */
	bool idle;                  /* its daemon does not run, and no service manager starts it */
	unsigned apart;             /* methods on which what is found of every engine has no bearing: bits */
	char methods[METHODS][128]; /* as a user types them, "--gpus all"; "": the engine has no such method */
};

/* All zero: nothing was found. */
struct findings {
	struct finding items[FINDINGS_MAX];
	size_t count;
	struct host_engine engines[FINDINGS_ENGINES_MAX];
	size_t engine_count;
	bool incomplete; /* there was more than there is room or memory for */
};

/**
 * findings_add() - report a finding
 * @format: a line of what was found and, behind a newline, what to do about it; or the first alone
 *
 * What fails shows in findings->incomplete, once for all of them.
 */
void findings_add(struct findings *findings, const char *id, enum severity severity, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/** The same; @arguments are taken. */
void findings_add_list(struct findings *findings, const char *id, enum severity severity, const char *format,
		       va_list arguments) __attribute__((format(printf, 4, 0)));

/** Says which methods the finding that was added last closes. @engine: stays. */
void findings_close(struct findings *findings, const char *engine, unsigned methods);

/** An error as a finding, with its advice as the remedy. */
void findings_add_error(struct findings *findings, const char *id, enum severity severity, const struct err *err);

/** The same of what a plan or an inventory has in one text: the first line as a finding, the others as its remedy. */
void findings_add_message(struct findings *findings, const char *id, enum severity severity, const char *message);

/** Appends an engine without methods, whose names stay. Return: it. */
struct host_engine *findings_add_engine(struct findings *findings, const char *id, const char *label);

/** Return: the first problem that closes every method of this machine; NULL. */
const struct finding *findings_block(const struct findings *findings);

/** Return: a new array; NULL without memory. */
json_t *findings_to_json(const struct findings *findings);
