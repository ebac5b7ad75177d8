/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Whether an engine gives a container a GPU that works, by which door, and why not by the others. It follows from the
 * engine's doors and from the findings that close them, and from nothing else.
 */

#include "base/str.h"
#include "model/finding.h"

/* Of one engine. */
struct summary {
	const struct host_engine *engine;
	const struct finding *closed_by[METHODS]; /* NULL: open, or the engine does not have this door */
	unsigned open;                            /* doors, bits by enum method */
	enum severity severity;                   /* warning: a door is broken; note: not set up; problem: all are */
	bool works;                               /* a door is open, and nothing of the machine itself is in the way */
};

struct summary summary_make(const struct findings *findings, const struct host_engine *engine);

/** Return: the finding to see to first where nothing works; NULL where something does. */
const struct finding *summary_first(const struct findings *findings);

/**
 * summary_text() - "yes by --gpus all; by --device KIND=all no, because …"
 * @brief: without what is merely not set up, if a door is open, and without what the machine's own problem closes
 *
 * Return: owned by the caller; NULL without memory.
 */
char *summary_text(const struct findings *findings, const struct summary *verdict, bool brief);

/** Whether something is wrong with the engine itself: it has a door that is broken, and not merely closed. */
bool summary_is_broken(const struct summary *verdict);

/** What to do: the first such finding that the verdict names. Return: borrowed; NULL: nothing. */
const char *summary_remedy(const struct summary *verdict);

/** Return: an array of {id, name, works, doors: [{id, use, works, because}]}; NULL without memory. */
json_t *summaries_to_json(const struct findings *findings);
