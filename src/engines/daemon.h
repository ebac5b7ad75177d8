/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * An engine's daemon that runs on this host, as /proc shows it to the caller. Its program identifies it: any process
 * can have a daemon's name and arguments, also in a container with the host's pids, and a set-uid program has root's
 * ids besides. So root's daemon counts only if
 * - all of its ids are root's,
 * - its program is the engine's, gives its caller no rights, and only root could have put it there,
 * - its root directory, mount and user namespaces are ours,
 * - it is the same process and program after everything was read,
 * - and no other process answers at the engine's socket.
 *
 * A user's own daemon (rootless) has its own namespaces, and the snap's daemon has its own root directory. A caller
 * that may not look at root's daemon sees only its arguments and its start time.
 */

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>

#include "root/rootfs.h"

/* ---- path lookup ---- */

/* Programs as an engine finds them: by name, on a PATH, in a root directory; and whose they are. */

/* What services are started with where nothing else is known. */
#define PATH_LOOKUP_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

struct text_buffer;

struct program {
	char *path;     /* as it was found; NULL: not at all */
	bool ours;      /* it is, or leads to, a program of ctr-gpu */
	struct stat st; /* of what was found, a link itself where it is one */
};

void path_lookup_clear(struct program *program);
#define _cleanup_program_ _cleanup_(path_lookup_clear)

/** Looks in each directory of @path. Return: whether there is one that may be executed. */
bool path_lookup_find(const struct rootfs *root, const char *path, const char *name, struct program *ret);

/** The same for one absolute path. */
bool path_lookup_look(const struct rootfs *root, const char *path, struct program *ret);

/** Whether this machine has it: on our PATH, the usual one, or as a snap. */
bool path_lookup_is_here(const char *name);

/* ---- process view ---- */

/*
 * A process as /proc shows it, held while it is looked at. Its owner can make it execute another program between two
 * looks, a set-uid program too. Its number and its start stay the same then, so its state is compared.
 */

/* The real, effective, saved and filesystem id, in the kernel's order. */
enum { PROCESS_VIEW_IDS = 4 };

/* State that differs in another program, or in another process of this number. */
struct process_state {
	unsigned long long started; /* in ticks since the boot */
	/* Where the kernel put its memory. A set-uid program always gets new random addresses. */
	unsigned long long layout[10];
	uid_t uids[PROCESS_VIEW_IDS];
	bool in_container; /* it has a number in a pid namespace below ours, too */
	pid_t parent;      /* may change: it is not compared */
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

/** Whether all of these ids are this user's. */
bool process_view_is_of(const struct process_view *view, uid_t uid);

/** Whether it runs still, and as the program and the user that it was when it was opened. */
bool process_view_is_unchanged(const struct process_view *view);

/* ---- daemon ---- */

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
	pid_t parent;    /* when it was looked at */
	int pidfd;       /* -1: Linux before 5.3 */
	uid_t uid;       /* of the user that started it */
	char *arguments; /* each with its NUL */
	size_t arguments_size;
	char *environment; /* NULL: not to be read */
	size_t environment_size;
	int root;                 /* O_PATH; -1: not to be entered */
	bool elsewhere;           /* it has a root or mounts of its own */
	pid_t rejected_pid;       /* of this name and user, and not counted; 0: none was seen */
	const char *rejected_why; /* why it is not taken for the daemon, for a sentence */
	bool snap;                /* it is the daemon of the snap "docker" */
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
 * daemon_option() - the value of an option, as "--name=value", "--name value", "-name value" or "-x value"
 * @letter: "-x"; NULL for none
 *
 * Return: the value of the last such option, which is the one that counts for engines, borrowed; NULL.
 */
const char *daemon_option(const struct daemon *daemon, const char *name, const char *letter);

/** The same of the option's next value, behind @value, which an earlier call returned; NULL: of the first. */
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

/** Whether a program got its name since then. An upgrade of our packages makes names anew that were there. */
bool daemon_is_older_than(const struct daemon *daemon, const struct program *program);

/**
 * daemon_look_up() - what the daemon executes by this name; where none runs, what one would that is started as services
 * are
 * @ret: the first such file on the daemon's PATH; to be cleared
 *
 * Return: whether there is one.
 */
bool daemon_look_up(const struct daemon *daemon, const char *name, struct program *ret);

/* ---- daemon socket ---- */

/* Where an engine's daemon listens, and who that is. */

/** Return: the path of its socket, borrowed; NULL if it was told to have none, or none is known. */
const char *daemon_socket_path(const struct daemon_kind *kind, const struct daemon *daemon);

/* ---- daemon http ---- */

/**
 * daemon_http_get() - ask for something such as "/version"
 * @path: of the socket
 * @ret:  the answer's body
 *
 * Return: 0; -ENOENT: the daemon answers that it has no such thing; -EACCES: it refuses; -EPROTO: it answers with
 * another error, or not in HTTP; -ETIMEDOUT: nothing within two seconds; -EFBIG; -ENOTCONN: the socket is missing;
 * negative errno.
 */
int daemon_http_get(const char *path, const char *what, struct text_buffer *ret);

/* ---- daemon root ---- */

/** The files that a daemon sees; ours if its own are not to be entered, or none runs. Return: 0 or negative errno. */
int daemon_open_root(const struct daemon *daemon, struct rootfs *ret);
