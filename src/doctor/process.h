/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A running daemon, as /proc shows it to whoever asks. Of another user's process only its name and arguments can be seen. */

#include <stdbool.h>
#include <sys/types.h>
#include <time.h>

#include "base/rootfs.h"
#include "base/str.h"

struct process {
	pid_t pid;            /* 0: none is running */
	uid_t uid;
	time_t started;
	struct strv arguments;
	char *path;           /* its PATH; NULL if it cannot be seen */
	char *home;
	struct rootfs root;   /* its root directory, in its mount namespace; ours if it cannot be seen */
	bool root_is_ours;
};

void process_clear(struct process *process);
#define _cleanup_process_ _cleanup_(process_clear)

/**
 * process_find() - the process of root, or else of whoever asks, that has this name and is in no container
 * @name: at most 15 characters
 * @ret:  its root is always open, "/" if there is no such process
 *
 * Return: 0; negative errno if not even "/" can be opened.
 */
int process_find(const char *name, struct process *ret);

/** The value of an option, as `--name=value`, `--name value` or `-x value`. Return: NULL if it is not among the arguments. */
const char *process_option(const struct process *process, const char *name, const char *letter);

bool process_has_argument(const struct process *process, const char *part);
