/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A process as /proc shows it, held while it is looked at. Whoever owns it may have it execute another program between
 * two looks, a set-uid one too, which keeps its number and its start; so what it was is compared with what it is.
 */

#include <stdbool.h>
#include <sys/types.h>

/* Real, effective, saved, and that of the file system, as the kernel orders them. */
enum { PROCESS_VIEW_IDS = 4 };

/* What another program, or another process of this number, has otherwise. */
struct process_state {
	unsigned long long started; /* in ticks since the boot */
	/* Where the kernel put its memory. Of a set-uid program that is always drawn anew. */
	unsigned long long layout[10];
	uid_t uids[PROCESS_VIEW_IDS];
	bool in_container; /* it has a number in a pid namespace below ours, too */
	dev_t device;      /* of its program; 0 where that is not to be seen */
	ino_t inode;
};

struct process_view {
	pid_t pid;
	int directory; /* in /proc; a later process of this number has another */
	int pidfd;     /* -1: Linux before 5.3 */
	struct process_state state;
};

#define PROCESS_VIEW_NONE ((struct process_view){.directory = -1, .pidfd = -1})

void process_view_close(struct process_view *view);
#define _cleanup_process_view_ __attribute__((cleanup(process_view_close)))

/** Looks at a process. @proc: the directory /proc. Return: 0; -ESRCH if it is gone; negative errno. */
int process_view_open(int proc, pid_t pid, struct process_view *ret);

/** A file of it, with a NUL behind it, owned by the caller. @ret_size: may be NULL. Return: NULL if there is none. */
char *process_view_read(const struct process_view *view, const char *name, size_t *ret_size);

/** Whether all of these ids are this user's. */
bool process_view_is_of(const struct process_view *view, uid_t uid);

/** Whether it runs still, and as the program and the user that it was when it was opened. */
bool process_view_is_unchanged(const struct process_view *view);
