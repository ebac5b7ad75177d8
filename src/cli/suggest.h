/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* For a command, an option or a name that does not exist: the one that was meant. */

#include <argp.h>
#include <stddef.h>

#include "cli/verbs.h"

/** Return: the one of some names that comes close, borrowed; NULL. */
const char *suggest_nearest(const char *const *names, size_t count, const char *name);

/** Ends with EXIT_STATUS_USAGE if a long option is not known that comes close to one that is; says which. */
void suggest_option(const struct argp *argp, const char *program, int argc, char *const *argv);

/** Says on standard error that the command is unknown, and which one comes close. */
void suggest_verb(const struct verb *table, const char *program, const char *name);
