/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The changes made to a container, oldest first, so that all of them can be undone. A step is written down before it is
 * done: wherever the process is stopped, the list says where to look. The list may lie in memory that a child shares
 * with its parent, and then they share descriptors, too: the parent undoes what a child did that it had to kill.
 */

#include <stdbool.h>
#include <stddef.h>

/*
 * The container's root, where that is another user than this process. What is created belongs to it, and is created
 * with no more rights than that user has: as a user that idmapped mounts know, and unable to touch what a volume holds
 * of others.
 */
struct mapped_root {
	bool other;
	unsigned uid, gid;
};

/** From here on files are the owner's; mapped_root_end() ends it. */
void mapped_root_begin(const struct mapped_root *owner);
void mapped_root_end(const struct mapped_root *owner);

enum {
	UNDO_STEP_NAME_SIZE = 328, /* a path below /run/systemd/transient of a unit and its drop-in */
	UNDO_STEP_FDS = 3,
	UNDO_LOG_MAX = 2048,
	UNDO_LOG_MADE_MAX = 16 * 1024,
	UNDO_LOG_RECORD_SIZE = 512,
	UNDO_LOG_DESCRIPTORS = 16, /* for undoing */
	UNDO_LOG_WORK_DESCRIPTORS = UNDO_LOG_MAX * UNDO_STEP_FDS + 2048, /* more than the work can have */
};

struct undo_log;

struct undo_step {
	/* Finds out whether it was done, and undoes it; calls only what signal-safety(7) allows. */
	void (*undo)(const struct undo_log *undo_log, const struct undo_step *undo_step);
	int fds[UNDO_STEP_FDS]; /* owned by the list as long as the step is in it; -1: none */
	unsigned number;        /* for undo() */
	int capability;         /* for undo() */
	bool borrows;           /* its first descriptor is an older step's, which the list undoes later */
	bool as_owner;          /* undone with the rights of the log's owner */
	const char *name;       /* in the list; "": none */
};

struct undo_log {
	bool ends;         /* the program does, with its work; descriptors that are left are closed then */
	int proc_self_fd;  /* /proc/self/fd of the process that undoes; owned; -1: none */
	int namespaces[2]; /* user and mount namespace, to be entered first; owned; -1: stay */
	struct mapped_root owner;
	int *restore_errno;                /* why a replaced file was not restored, the last one; NULL: not asked for */
	char step[128];                    /* for a message of the parent */
	char record[UNDO_LOG_RECORD_SIZE]; /* where the parent writes what was made, when all is done; "": nowhere */
	size_t made_count, made_size;
	char made
		[UNDO_LOG_MADE_MAX]; /* texts, each with a NUL behind it (apply/layer.c); pages are touched when used */
	size_t count;
	struct undo_step items[UNDO_LOG_MAX];
	size_t names_size;
	char names[UNDO_LOG_MAX * UNDO_STEP_NAME_SIZE];
};

/** @shared: with children that are started from now on. Return: an empty list; NULL without memory. */
struct undo_log *undo_log_new(bool shared);

/** Closes what the list holds; what was done stays. Return: NULL. */
struct undo_log *undo_log_free(struct undo_log *undo_log);

/**
 * undo_log_add() - write down what is about to be done
 * @name: for the copy that is kept of @undo_step; NULL: none
 *
 * Return: 0; -E2BIG; -ENAMETOOLONG.
 */
int undo_log_add(struct undo_log *undo_log, const struct undo_step *undo_step, const char *name);

/** The newest was not done after all; its descriptors are the caller's again. */
void undo_log_pop(struct undo_log *undo_log);

/** Changes the number of the newest, for one that is done in several steps. */
void undo_log_set_number(struct undo_log *undo_log, unsigned number);

/**
 * undo_log_note() - note what was made in the container's layer, to be removed at the container's end
 * @kind:   one letter
 * @path:   in the container
 * @detail: what the file says
 *
 * What does not fit into the log stays in the layer.
 */
void undo_log_note(struct undo_log *undo_log, char kind, const char *path, const char *detail);

/**
 * undo_log_progress() - sets what the parent says if it stops waiting
 * @undo_log: may be NULL
 * @text:     with "%s" where the name stands
 * @name:     NULL: there is none
 *
 * Said for each mount and nearly never read, so it takes no time.
 */
void undo_log_progress(struct undo_log *undo_log, const char *text, const char *name);

/**
 * undo_log_limit_descriptors() - set how many descriptors this process may have, within its hard limit
 * @work:  it changes a container, and leaves some to undo_log_undo(), which opens files, too; false: it undoes
 * @alone: it has none besides those of its work
 */
void undo_log_limit_descriptors(bool work, bool alone);

/** Undoes everything, newest first; may be called in a signal handler. Never fails. */
void undo_log_undo(struct undo_log *undo_log);
