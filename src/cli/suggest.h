/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* For a command that does not exist: the one that was meant. */

#include "cli/verbs.h"

/** Says on standard error that the command is unknown, and which one comes close. */
void suggest_verb(const struct verb *table, const char *program, const char *name);
