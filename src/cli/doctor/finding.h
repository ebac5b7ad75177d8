/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a check has to say: plain data, for a person's screen and for programs. A finding may close doors, the ways into a container
 * that engines have; verdicts follow from that and from nothing else.
 */

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"

enum severity {
	SEVERITY_OK,
	SEVERITY_NOTE,    /* worth knowing; nothing to do */
	SEVERITY_WARNING, /* works, but not all of it, or not for long */
	SEVERITY_PROBLEM, /* a container would not get a GPU that works */
	SEVERITIES,
};

/* Ways into a container. */
enum door {
	DOOR_GPUS,    /* --gpus */
	DOOR_HOOK,    /* NVIDIA_VISIBLE_DEVICES, by a hooks directory */
	DOOR_RUNTIME, /* a runtime "nvidia" */
	DOOR_CDI,     /* a CDI device */
	DOOR_CLI,     /* nvidia-container-cli, which the engine runs */
	DOORS,
};
#define DOOR(name) (1U << DOOR_##name)

/** "gpus", "hook", … */
const char *door_name(enum door door);

struct finding {
	char *id;     /* stable, "store.incomplete"; what is before the dot is the subject */
	enum severity severity;
	char *text;
	char *remedy; /* NULL if there is nothing to do */
	char *engine; /* by its id, ANY_ENGINE, or NULL: it is of no engine, and a problem then closes every door there is */
	unsigned doors; /* of that engine, that it closes: bits by enum door */
};

#define ANY_ENGINE "*"
#define ALL_DOORS (~0U)

struct findings {
	struct finding *items;
	size_t count;
	bool incomplete; /* there was no memory for one */
};

void findings_clear(struct findings *findings);
#define _cleanup_findings_ _cleanup_(findings_clear)

/** Appends a finding. What fails shows in findings->incomplete, once for all of them. */
void findings_add(struct findings *findings, const char *id, enum severity severity, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/** Says what to do about the finding that was added last. */
void findings_advise(struct findings *findings, const char *format, ...) __attribute__((format(printf, 2, 3)));

/** Says which doors the finding that was added last closes. */
void findings_close(struct findings *findings, const char *engine, unsigned doors);

/** The first line of a library's sentence as a finding, the others as its remedy. */
void findings_add_message(struct findings *findings, const char *id, enum severity severity, const char *message);

/** Return: "ok", "note", "warning" or "problem". */
const char *severity_name(enum severity severity);

/** Return: the first finding of the greatest severity there is; NULL if there is none at all. */
const struct finding *findings_worst(const struct findings *findings);

/** Return: the first problem that closes every door of this machine; NULL. */
const struct finding *findings_block(const struct findings *findings);

/** Return: a new array; NULL if there is no memory. */
json_t *findings_to_json(const struct findings *findings);

/** Appends what findings_to_json() made. Return: 0; -EINVAL; -ENOMEM. */
int findings_from_json(const json_t *array, struct findings *findings);
