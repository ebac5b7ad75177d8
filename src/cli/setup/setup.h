/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * ctr-gpu setup, and what it knows of each engine. The verb reads the engine's file, lets the engine's editor change the text,
 * and shows or writes it; an engine knows its files, what to put into them, and what makes its daemon notice.
 *
 * Functions that fail have said why on standard error; they return 0 or the exit status.
 */

#include <jansson.h>
#include <stdbool.h>

#include "cli/config_file.h"
#include "cli/globals.h"
#include "engines/daemon.h"
#include "engines/text.h"

struct setup {
	struct globals *globals;
	const struct setup_engine *engine;
	const char *config;  /* --engine-config; NULL: the engine's own */
	char *runtime;       /* ctr-gpu-runtime, an absolute path */
	const char *runtime_given;
	bool dry_run, remove, replace, set_default, rootless;
	bool all;             /* each engine that was set up, since ctr-gpu itself is to go */
	bool released;        /* the daemon has let go of it already */
	struct daemon daemon; /* the one that this is for, if it runs */
	char *version;        /* of the daemon; NULL: not known */
	char *path;           /* of the file to change */
	bool unreached;       /* the daemon that runs does not read that file, or cannot run our program; that has been said */
	bool needs_restart;   /* reloading is not enough for what was edited */
};

struct setup_engine {
	const char *name;
	/* Finds out setup->path, the daemon, and whatever forbids to go on. */
	int (*look)(struct setup *setup);
	/* As json_text_check(), json_text_undo(). */
	int (*check)(const struct text *text, struct text_error *ret_error);
	int (*undo)(struct text *text, const json_t *edit);
	/* Puts in what is missing, and says in the journal what it did. */
	int (*edit)(struct setup *setup, struct text *text, json_t *edits);
	/* Whether its daemon notices what is put at this path of the file, or removed from it, only when it starts; NULL: always so. */
	bool (*restarts_for)(const char *leaf, bool remove);
	/* Takes out what is recognizably ours although nobody remembers how it came in, and a default that would name nothing then. */
	int (*forget)(struct text *text);
	/* Before @file becomes @to and our programs go: makes the daemon work without them, and says so in setup->released. May be NULL. */
	int (*release)(struct setup *setup, struct config_file *file, const struct text *to);
	/* Says what else is needed, and what makes the daemon notice. @changed: that is, if there is something to notice. */
	void (*advise)(struct setup *setup, bool changed);
};

extern const struct setup_engine setup_containerd, setup_crio, setup_docker, setup_podman;

/** A remark for the user, indented behind the name of the engine. */
void setup_say(const struct setup *setup, const char *format, ...) __attribute__((format(printf, 2, 3)));

/** The path of a program of ours that is installed beside this one, owned by the caller; NULL without memory. */
char *setup_find_program(const char *name);

/** Finds setup->daemon, as daemon_find() does. */
int setup_find_daemon(struct setup *setup, const char *name, uid_t uid, bool (*wanted)(const struct daemon *daemon));

/**
 * setup_find_path() - set setup->path: the file of --engine-config, that of the daemon's option (daemon_config()), or the usual one
 * @usual: taken over; NULL: there was no memory for it
 */
int setup_find_path(struct setup *setup, const char *option, const char *letter, char *usual);

/** For an editor of TOML: says why it failed. @r: what it returned. */
int setup_check_toml(const struct setup *setup, int r, const char *table);

/**
 * setup_find_elsewhere() - look for a setting in the other files of an engine
 * @pattern:   of their names, for glob(7)
 * @key:       path of the setting or the table
 * @ret_file:  the last file that has it and does not name our runtime as its value, owned by the caller; NULL: none
 */
int setup_find_elsewhere(const struct setup *setup, const char *pattern, const char *key, char **ret_file);

/**
 * setup_refuse_other() - say what becomes of another file's runtime "nvidia"
 * @own:    of our drop-in, in the directory of which the engine reads what is sorted behind it later
 * @other:  that file
 * @reader: the engine
 *
 * Return: 0 if ours may count instead; the exit status after a message was printed.
 */
int setup_refuse_other(const struct setup *setup, const char *own, const char *other, const char *reader);

/** Our runtime as a TOML string, owned by the caller; NULL without memory. */
char *setup_quote_runtime(const struct setup *setup);
