/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * ctr-gpu setup, and what it does to each engine. The verb reads the engine's file, lets the engine put its keys into
 * the text, and shows or writes it; src/engines has the facts.
 *
 * Functions that fail have said why on standard error; they return 0 or the exit status.
 */

#include <stdbool.h>

#include "cli/config_file.h"
#include "cli/globals.h"
#include "engines/engine.h"
#include "engines/text.h"

struct setup {
	struct globals *globals;
	const struct setup_engine *engine;
	const char *config; /* --engine-config; NULL: the engine's own */
	char *runtime;      /* ctr-gpu-runtime, an absolute path */
	const char *runtime_given;
	bool dry_run, remove, replace, set_default, rootless;
	bool all;             /* each engine that was set up, since ctr-gpu itself is to go */
	bool released;        /* the daemon has let go of it already */
	struct daemon daemon; /* the one that this is for, if it runs */
	char *version;        /* of the daemon; NULL: not known */
	char *path;           /* of the file to change */
	bool unreached;       /* the daemon does not read that file, or cannot run our program; that has been said */
	bool needs_restart;   /* reloading is not enough for what was changed */
};

/* A kind of file: json_file.h, toml_file.h. */
struct setup_format {
	int (*check)(const struct text *text, struct text_error *ret_error);
	int (*get)(const struct text *text, const char *path, char **ret);
	int (*set)(struct text *text, const char *path, const char *value);
	int (*cut)(struct text *text, const struct text *known); /* NULL: it has no marked lines */
};
extern const struct setup_format setup_json, setup_toml;

struct setup_engine {
	const struct engine *facts;
	const struct setup_format *format;
	const char *runtime; /* path of the whole of the runtime; NULL: facts->runtime is all of it */
	/* Finds out setup->path, the daemon, and whatever forbids to go on. */
	int (*look)(struct setup *setup);
	/* Puts in what is missing. */
	int (*edit)(const struct setup *setup, struct text *text);
	/*
	 * Whether its daemon notices what is put at this path of the file, or removed from it, only when it starts;
	 * NULL: always so.
	 */
	bool (*restarts_for)(const char *path, bool remove);
	/* Takes out what is recognizably ours, and a default that would name nothing then. Return: 0 or -errno. */
	int (*forget)(struct text *text);
	/*
	 * Before @file becomes @to and our programs go: makes the daemon work without them, and says so in
	 * setup->released. May be NULL.
	 */
	int (*release)(struct setup *setup, struct config_file *file, const struct text *to);
	/*
	 * Says what else is needed, and what makes the daemon notice. @changed: that is, if there is something to
	 * notice.
	 */
	void (*advise)(struct setup *setup, bool changed);
};
extern const struct setup_engine setup_containerd, setup_crio, setup_docker, setup_podman;

/** A remark for the user, indented behind the name of the engine. */
void setup_say(const struct setup *setup, const char *format, ...) __attribute__((format(printf, 2, 3)));

/** The path of a program of ours that is installed beside this one, owned by the caller; NULL without memory. */
char *setup_find_program(const char *name);

/** Finds setup->daemon, as daemon_find() does. */
int setup_find_daemon(struct setup *setup, uid_t uid, bool (*wanted)(const struct daemon *daemon));

/** Sets setup->path: the file of --engine-config, that of the daemon's option (daemon_config()), or the usual one. */
int setup_find_path(struct setup *setup, const char *usual, const char *usual_of_user);

/** Says that the daemon does not run or, after a change, what makes it notice. */
void setup_advise_restart(struct setup *setup, bool changed);

/** For an editor of TOML: says why it failed. @r: what it returned. */
int setup_check_toml(const struct setup *setup, int r, const char *table);

/**
 * setup_find_elsewhere() - look for a setting in the other files of an engine
 * @pattern:   of their names, for glob(7)
 * @key:       path of the setting or the table
 * @ret_file:  the last file that has it and does not name our runtime as its value, owned by the caller; kept if there
 * is none
 */
int setup_find_elsewhere(const struct setup *setup, const char *pattern, const char *key, char **ret_file);

/** Says what becomes of another file's runtime "nvidia". Return: 0 if ours may count instead; the exit status. */
int setup_refuse_other(const struct setup *setup, const char *other);

/** Our runtime as a TOML string, owned by the caller; NULL without memory. */
char *setup_quote_runtime(const struct setup *setup);
