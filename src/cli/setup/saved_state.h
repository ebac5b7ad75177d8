/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What `ctr-gpu setup` wrote, so that `--remove` can give back what was there: /var/lib/ctr-gpu/setup.json, or below
 * the user's state directory where a user's own files were changed. An entry for each file, "before" missing if there
 * was none, and one without an engine for each CDI spec:
 *
 *	{"engine": "docker", "before": "…", "after": "…", "directories": ["/etc/docker"]}
 *
 * Beside these, "directories" are those that were made for this file itself.
 * It is written before the file is, and removed after the file is as it was. Functions that fail have said why on
 * standard error.
 */

#include "cli/config_file.h"

struct saved_state {
	char *directory;
	struct config_file file;
	json_t *entries; /* by the file's path */
	json_t *made;    /* directories that were not there */
	int home;        /* the directory */
	int lock;
};

#define SAVED_STATE_CLOSED ((struct saved_state){.home = -1, .lock = -1})

void saved_state_close(struct saved_state *state);
#define _cleanup_state_ __attribute__((cleanup(saved_state_close)))

/**
 * saved_state_open() - read it
 * @change: it is to be written, too; others wait meanwhile, a minute at most, and a user's ^C until it is closed
 *
 * Return: 0 or the exit status.
 */
int saved_state_open(struct saved_state *state, bool change);

/** Replaces the entry of a file, or removes it if @entry is NULL, and saves. Return: 0 or the exit status. */
int saved_state_set(struct saved_state *state, const char *path, json_t *entry);
