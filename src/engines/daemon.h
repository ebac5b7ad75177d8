/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * An engine's daemon that runs on this host, as /proc shows it to whoever asks. Any process may have a daemon's name,
 * one in a container with the host's pids too; so root's counts only if its root directory, mount and user namespaces
 * are ours and its program is one that only root could have put there. A user's own (rootless) has namespaces of its
 * own, and the snap's a root. Whoever may not look at root's daemon sees arguments and start alone.
 */

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <time.h>

#include "engines/path_lookup.h"

struct daemon {
	pid_t pid;       /* 0: none was found */
	uid_t uid;       /* of whoever started it */
	char *arguments; /* each with its NUL */
	size_t arguments_size;
	char *environment; /* NULL: not to be read */
	size_t environment_size;
	int root;                /* O_PATH; -1: not to be entered */
	bool elsewhere;          /* it has a root or mounts of its own */
	pid_t rejected_pid;      /* of this name and user, and not counted; 0: none was seen */
	bool snap;               /* it is that of the snap "docker" */
	struct timespec started; /* 0: not known */
};

/* A daemon that was not found; it may be closed. */
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

/**
 * daemon_config() - the configuration file that an option names
 * @ret: its path, owned by the caller; NULL if the option is missing, or its value is relative
 *
 * Only a regular file counts that root, or the user whose daemon it is, alone could have put there and may change; or
 * one that is still missing there. A daemon with mounts of its own is not followed: its paths may be other files here.
 *
 * Return: 0; -EPERM, with the path in @ret, if it does not count; negative errno.
 */
int daemon_config(const struct daemon *daemon, const char *name, const char *letter, char **ret);

/** Whether it is not a containerd that dockerd started for itself; for daemon_find(). */
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
 * daemon_look_up() - what the daemon executes by this name; where none runs, what one would that is started as services
 * are
 * @ret: the first such file on the daemon's PATH; to be cleared
 *
 * Return: whether there is one.
 */
bool daemon_look_up(const struct daemon *daemon, const char *name, struct program *ret);
