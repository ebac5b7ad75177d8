/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The changes made to a container, oldest first, so that all of them can be undone. A deed is written down before it is
 * done: wherever the process is stopped, the list says where to look. The list may lie in memory that a child shares
 * with its parent, and then they share descriptors, too: the parent undoes what a child did that it had to kill.
 */

#include <stdbool.h>
#include <stddef.h>

#include "root/owner.h"

enum {
	DEED_NAME_SIZE = 328, /* a path below /run/systemd/transient of a unit and its drop-in */
	DEED_FDS = 3,
	DEEDS_MAX = 2048,
};

struct deeds;

struct deed {
	/* Finds out whether it was done, and undoes it; calls only what signal-safety(7) allows. */
	void (*undo)(const struct deeds *deeds, const struct deed *deed);
	int fds[DEED_FDS]; /* owned by the list as long as the deed is in it; -1: none */
	unsigned number;   /* for undo() */
	int capability;    /* for undo() */
	bool as_owner;     /* undone with the rights of deeds->owner */
	char name[DEED_NAME_SIZE];
};

struct deeds {
	int proc_self_fd;  /* /proc/self/fd of the process that undoes; owned; -1: none */
	int namespaces[2]; /* user and mount namespace, to be entered first; owned; -1: stay */
	struct owner owner;
	char step[128]; /* for a message of the parent */
	size_t count;
	struct deed items[DEEDS_MAX];
};

/** @shared: with children that are started from now on. Return: an empty list; NULL without memory. */
struct deeds *deeds_new(bool shared);

/** Closes what the list holds; what was done stays. Return: NULL. */
struct deeds *deeds_free(struct deeds *deeds);

/**
 * deeds_add() - write down what is about to be done
 * @name: for the copy that is kept of @deed; NULL: none
 *
 * Return: 0; -E2BIG; -ENAMETOOLONG.
 */
int deeds_add(struct deeds *deeds, const struct deed *deed, const char *name);

/** The newest was not done after all; its descriptors are the caller's again. */
void deeds_drop(struct deeds *deeds);

/** Changes the number of the newest, for one that is done in several steps. */
void deeds_mark(struct deeds *deeds, unsigned number);

/**
 * deeds_step() - sets what the parent says if it stops waiting
 * @deeds: may be NULL
 * @text:  with "%s" where the name stands
 * @name:  NULL: there is none
 *
 * Said for each mount and nearly never read, so it takes no time.
 */
void deeds_step(struct deeds *deeds, const char *text, const char *name);

/** Undoes everything, newest first; may be called in a signal handler. Never fails. */
void deeds_undo(struct deeds *deeds);
