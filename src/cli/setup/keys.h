/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What setup puts into an engine's file and takes out again, on what the file says, whatever its format: the runtime
 * "nvidia" as a whole, the default runtime, and what turns CDI on. A key is a path of json_at().
 */

#include "cli/setup/setup.h"

/**
 * keys_put() - have a file say something
 * @section: of the engine's; "" for those without
 * @value:   stolen; NULL: without memory
 *
 * Return: 0 or the exit status, after a message.
 */
int keys_put(const struct setup *setup, json_t *file, const char *section, const char *key, json_t *value);

/** The same for the runtime and, if asked for, the default; unless the name is another's, in this file or a later. */
int keys_put_runtime(const struct setup *setup, json_t *file, const char *section, json_t *value);

/** Return: the runtime "nvidia" with everything that is said of it, borrowed; NULL. */
json_t *keys_runtime(const struct engine *engine, const json_t *file, const char *section);

/** Return: its program or the first of them, borrowed; NULL. */
const char *keys_program(const struct engine *engine, const json_t *file, const char *section);

/** Whether a runtime's program is ours, by whatever name and links; a bare one is what the daemon finds by it. */
bool keys_is_ours(const struct setup *setup, const char *program);

/**
 * keys_undo() - undo in a file what made @after of @before, and leave alone what somebody has changed since
 *
 * Return: whether something of it stays; -ENOMEM.
 */
int keys_undo(const struct setup_engine *engine, json_t *file, const json_t *before, const json_t *after);

/** Takes out what is recognizably ours, and a default that would name nothing then. Return: 0 or -ENOMEM. */
int keys_forget(const struct setup_engine *engine, json_t *file);

/** Says what was written, and finds out whether the daemon notices it only when it starts. Return: 0 or -ENOMEM. */
int keys_compare(struct setup *setup);
