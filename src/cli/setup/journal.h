/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What `ctr-gpu setup` did to which file, so that `--remove` can undo it: /var/lib/ctr-gpu/setup.json, or below the user's
 * state directory where a user's own files were changed. An entry per file:
 *
 *	{"engine": "docker", "created": true, "directories": ["/etc/docker"], "edits": […]}
 *
 * It is written before the file is, since an edit that is not there is easily undone, and removed after the file's last edit is.
 * Functions that fail have said why on standard error.
 */

#include "cli/config_file.h"

struct journal {
	struct config_file file;
	json_t *entries; /* by the file's path */
	json_t *found;   /* as they were read */
	json_t *made;	 /* directories that were not there */
	int lock;
};

/* Begins as {.lock = -1}. */
void journal_close(struct journal *journal);
#define _cleanup_journal_ __attribute__((cleanup(journal_close)))

/**
 * journal_open() - read the journal
 * @user:   that of the user, not of the machine
 * @change: it is to be written, too; others wait meanwhile
 *
 * Return: 0 or the exit status.
 */
int journal_open(struct journal *journal, bool user, bool change);

/** Replaces the entry of a file, or removes it if @entry is NULL, and saves. Return: 0 or the exit status. */
int journal_set(struct journal *journal, const char *path, json_t *entry);
