/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * An engine's daemon that runs on this host, as /proc shows it to whoever asks. A daemon is what its program is: any
 * process may have a daemon's name and arguments, one in a container with the host's pids too, and a set-uid program
 * root's ids besides. So root's counts only if all of its ids are root's, its program is the engine's, which gives
 * nobody rights and which only root could have put there, its root directory, mount and user namespaces are ours, it is
 * the same process and program after all was read, and no other process answers at the engine's socket. A user's own
 * (rootless) has namespaces of its own, and the snap's a root. Whoever may not look at root's daemon sees arguments and
 * start alone.
 */

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <time.h>

#include "engines/path_lookup.h"

struct daemon;

/* How an engine's daemon is recognised, and told from others. */
struct daemon_kind {
	const char *name; /* of the process and of its program's file, at most 15 characters; NULL: there is none */
	const char *multicall; /* a directory below which the file may be called as the directory is; NULL: none */
	bool (*is_wanted)(const struct daemon *daemon); /* NULL: any of that name */
	const char *socket;                             /* where it listens; NULL: nowhere */
	const char *socket_option, *socket_letter;      /* by which it is told to listen elsewhere; NULL: none */
};

struct daemon {
	pid_t pid;       /* 0: none was found */
	int pidfd;       /* -1: Linux before 5.3 */
	uid_t uid;       /* of whoever started it */
	char *arguments; /* each with its NUL */
	size_t arguments_size;
	char *environment; /* NULL: not to be read */
	size_t environment_size;
	int root;                 /* O_PATH; -1: not to be entered */
	bool elsewhere;           /* it has a root or mounts of its own */
	pid_t rejected_pid;       /* of this name and user, and not counted; 0: none was seen */
	const char *rejected_why; /* what it does that a daemon does not, for a sentence */
	bool snap;                /* it is that of the snap "docker" */
	struct timespec started;  /* 0: not known */
};

/* A daemon that was not found; it may be closed. */
#define DAEMON_NONE ((struct daemon){.root = -1, .pidfd = -1})

void daemon_close(struct daemon *daemon);
#define _cleanup_daemon_ __attribute__((cleanup(daemon_close)))

/**
 * daemon_find() - the daemon of this kind that was started by this user, and is in no container
 * @ret: DAEMON_NONE if there is none
 *
 * Return: 0, also if there is none; negative errno if /proc cannot be read.
 */
int daemon_find(const struct daemon_kind *kind, uid_t uid, struct daemon *ret);

/** Sends a signal to that process, and to no later one of its number. */
void daemon_signal(const struct daemon *daemon, int number);

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

/** Whether it is not a containerd that dockerd started for itself; for struct daemon_kind. */
bool daemon_stands_alone(const struct daemon *daemon);

/**
 * daemon_option() - the value of an option, as "--name=value", "--name value" or "-x value"
 * @letter: "-x"; NULL for none
 *
 * Return: that of the first, borrowed; NULL.
 */
const char *daemon_option(const struct daemon *daemon, const char *name, const char *letter);

/** The same of the one behind @value, which was got so. @name: NULL: there is no such option. */
const char *daemon_next_option(const struct daemon *daemon, const char *name, const char *letter, const char *value);

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
