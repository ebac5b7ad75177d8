/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * An engine's daemon that runs on this host, as /proc shows it to whoever asks: the files and programs that it sees may be others
 * than ours, where it came as a snap, for a user, or in a container. Of another user's daemon only arguments and start are shown.
 */

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <time.h>

struct daemon {
	pid_t pid;         /* 0: none was found */
	uid_t uid;         /* of whoever started it */
	char *arguments;   /* each with its NUL */
	size_t arguments_size;
	char *environment; /* NULL: not to be read */
	size_t environment_size;
	int root;                /* O_PATH; -1: not to be entered */
	bool elsewhere;          /* it has a root or mounts of its own */
	bool snap;               /* it is that of the snap "docker" */
	struct timespec started; /* 0: not known */
};

/* What a daemon is before it is found, so that it may be closed. */
#define DAEMON_NONE ((struct daemon){.root = -1})

void daemon_close(struct daemon *daemon);
#define _cleanup_daemon_ __attribute__((cleanup(daemon_close)))

/**
 * daemon_find() - the daemon that has this name, was started by this user, and is in no container
 * @name:   at most 15 characters
 * @wanted: further condition; NULL for none
 * @ret:    DAEMON_NONE if there is none
 *
 * Return: 0, also if there is none; negative errno if /proc cannot be read.
 */
int daemon_find(const char *name, uid_t uid, bool (*wanted)(const struct daemon *daemon), struct daemon *ret);

/** Whether it is no containerd that dockerd has started for itself; for daemon_find(). */
bool daemon_stands_alone(const struct daemon *daemon);

/**
 * daemon_option() - the value of an option, as "--name=value", "--name value" or "-x value"
 * @letter: "-x"; NULL for none
 *
 * Return: that of the first, borrowed; NULL.
 */
const char *daemon_option(const struct daemon *daemon, const char *name, const char *letter);

/** Whether an argument is @name, or begins with it and has '=' behind it. */
bool daemon_has_option(const struct daemon *daemon, const char *name);

/** Whether any argument, its own name among them, has these characters in it. */
bool daemon_mentions(const struct daemon *daemon, const char *part);

/** Return: the value of an environment variable, borrowed; NULL. */
const char *daemon_variable(const struct daemon *daemon, const char *name);

/** Whether the daemon, too, finds this file of ours at this path. */
bool daemon_sees(const struct daemon *daemon, const char *path);

/** Whether something happened since the daemon has started. */
bool daemon_is_older(const struct daemon *daemon, const struct timespec *than);

/**
 * daemon_look_up() - what the daemon executes by this name
 * @ret_since: when the name came to be; may be NULL
 *
 * Return: the path of the first such file on the daemon's PATH, owned by the caller; NULL.
 */
char *daemon_look_up(const struct daemon *daemon, const char *program, struct timespec *ret_since);
