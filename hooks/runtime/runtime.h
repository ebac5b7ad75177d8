/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The hook's program as ctr-gpu-runtime: two static programs would be the same libraries twice. */

#include <stdbool.h>
#include <stddef.h>

#include <ctr-gpu.h>

/** Whether it was called by this name. */
bool runtime_is_called(const char *program);

/** All of it. Return: the exit status, unless the program has become the OCI runtime. */
int runtime_main(int argc, char **argv);

/* As much of a runtime's command line as must be understood to find a bundle in it. Strings are argv's own. */

struct command_line {
	const char *command;         /* "create", "state", …; NULL: there is none */
	bool creates;                /* of create and run: there is a bundle */
	const char *bundle, *config; /* NULL: the usual ones */
	const char *log;             /* where the engine looks for errors; NULL: nowhere */
	bool log_json;
};

/** Reads the arguments. Unknown ones are left to the runtime. */
void command_line_read(char *const *words, struct command_line *ret);

/* Looking for a program that the machine has. */

enum { FIND_RUNTIME_PATH_MAX = 4096 };

/* The runtime that does the work. */

/**
 * find_runtime() - the first of the runtimes that is installed, and is not this program under another name
 * @ret_path: absolute, for free(3)
 *
 * Return: 0; -ENOENT; -ENOMEM.
 */
int find_runtime(const struct ctr_gpu_context *context, char **ret_path);

/** find_runtime_beside() - a program that is installed beside this one. Return: absolute path for free(3) or NULL. */
char *find_runtime_beside(const char *name);
