/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* As much of a runtime's command line as must be understood to find a bundle in it. Strings are argv's own. */

#include <stdbool.h>

struct command_line {
	const char *command;         /* "create", "state", …; NULL: there is none */
	bool creates;                /* of create and run: there is a bundle */
	const char *bundle, *config; /* NULL: the usual ones */
	const char *log;             /* where the engine looks for errors; NULL: nowhere */
	bool log_json;
};

/** Reads the words behind the program's name. What is not understood is the runtime's business. */
void command_line_read(char *const *words, struct command_line *ret);
