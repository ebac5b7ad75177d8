/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * An engine's daemon that runs on this host, as /proc shows it: the files and programs that it sees may be others than ours,
 * where it came as a snap, for a user, or in a container.
 */

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct daemon {
	pid_t pid;         /* 0: none was found */
	char *arguments;   /* each with its NUL */
	size_t arguments_size;
	char *environment; /* NULL: not to be read */
	size_t environment_size;
	int root;                /* O_PATH; -1: not to be entered */
	bool elsewhere;          /* it has a root or mounts of its own */
	bool snap;
	unsigned long long start; /* seconds since the epoch */
};

/* Begins as {.root = -1}. */
void daemon_close(struct daemon *daemon);
#define _cleanup_daemon_ __attribute__((cleanup(daemon_close)))

/**
 * daemon_find() - the daemon that has this name, runs as this user, and is in no container
 * @wanted: further condition; NULL for none
 * @user:   for @wanted
 *
 * Return: 0, also if there is none; the exit status after a message was printed.
 */
int daemon_find(const char *name, uid_t uid, bool (*wanted)(const struct daemon *daemon, const void *user), const void *user,
		struct daemon *ret);

/** Return: the value of "NAME=value" or "NAME value" among its arguments, borrowed; NULL. */
const char *daemon_argument(const struct daemon *daemon, const char *name);

/** Whether an argument is @name, or begins with it and has '=' behind it. */
bool daemon_has_argument(const struct daemon *daemon, const char *name);

/** Return: the value of an environment variable, borrowed; NULL. */
const char *daemon_variable(const struct daemon *daemon, const char *name);

/** Whether the daemon, too, finds this file of ours at this path. */
bool daemon_sees(const struct daemon *daemon, const char *path);

/** Whether the program was put where it is after the daemon has started. */
bool daemon_is_older(const struct daemon *daemon, const char *path);

/** Return: the path of the first file that is executable by this name on the daemon's PATH, owned by the caller; NULL. */
char *daemon_look_up(const struct daemon *daemon, const char *program);

enum daemon_step { DAEMON_RELOAD, DAEMON_RESTART };

/** Return: the command that makes the service reload or restart here, owned by the caller; NULL without memory. */
char *daemon_command(const struct daemon *daemon, const char *service, bool user, enum daemon_step step);
