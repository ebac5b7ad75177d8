/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * ctr-gpu setup, and what it does to each engine. The verb reads the engine's file, lets the engine put its keys into
 * what that says, and shows or writes it; src/engines has the facts.
 *
 * Functions that fail have said why on standard error; they return 0 or the exit status.
 */

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "cli/config_file.h"
#include "cli/session.h"
#include "engines/config.h"
#include "engines/engine.h"
#include "engines/text.h"

/* ---- saved state ---- */

/*
 * Which files are set up, and what --remove restores in Docker's daemon.json: its text before, missing if there was no
 * file, and after setup. TOML files say themselves what was written into them. The state is in
 * /var/lib/ctr-gpu/setup.json, or below the user's state directory for a user's own files. An entry is written before
 * its file is, and removed after that is as it was.
 *
 *	{"version": 1, "files": {"/etc/docker/daemon.json": {"engine": "docker", "before": "…", "after": "…"}}}
 */

struct saved_state {
	char *directory;
	struct config_file file;
	json_t *entries; /* by the file's path */
	int home;        /* the directory */
	int lock;
	bool held; /* another process has the lock, or did as a signal came */
};

#define SAVED_STATE_CLOSED ((struct saved_state){.home = -1, .lock = -1})

void saved_state_close(struct saved_state *state);

/** Reads it. @change: it is to be written, too; others wait meanwhile, a minute at most */
int saved_state_open(struct saved_state *state, bool change);

/** Replaces the entry of a file, or removes it if @entry is NULL, and saves. */
int saved_state_set(struct saved_state *state, const char *path, json_t *entry);

/* ---- setup ---- */

/*
 * The runtime's program, by NVIDIA's name, is in a directory of our own. VS Code's Dev Containers and DevPod give a
 * container --gpus if `docker info` has the name in the path of the runtime "nvidia".
 */
#define NVIDIA_NAME "nvidia-container-runtime"
#define NVIDIA_NAMES "libexec/ctr-gpu/nvidia-names"

struct setup {
	struct global_options *globals;
	const struct setup_engine *engine;
	const char *config; /* --engine-config; NULL: the engine's own */
	bool kubernetes;    /* the engine of a node of Kubernetes is meant */
	const struct engine_node *node;
	char *runtime; /* ctr-gpu-runtime, an absolute path */
	const char *runtime_given;
	bool dry_run, remove, replace, set_default, rootless;
	bool all;             /* each engine that was set up, since ctr-gpu itself is to go */
	bool released;        /* the daemon has let go of it already */
	struct daemon daemon; /* the one that this is for, if it runs */
	char *path;           /* of the file to change */
	bool unreached;       /* the daemon does not read that file, or cannot run our program; that has been said */
	struct saved_state state;
	bool forgetful;          /* it cannot be read, and that has been said: what is recognizably ours is taken out */
	json_t *entry;           /* of the state, for the file; NULL: it is not there */
	struct config_file file; /* as it is */
	struct text_buffer to;   /* what is to be in it; without data: it is to go */
	bool changed;            /* it is not so already */
	json_t *now, *then;      /* what both say; the engine edits the latter */
	const char *section;     /* of it, for keys of the engine's; "" where it has none */
	struct strv changes;     /* of keys, to be said once they are written */
	struct engine_config found; /* what the engine reads, before the file is changed */
};

struct setup_engine {
	const struct engine *facts;
	const char *file, *user_file; /* of our own; NULL: the engine's first is changed */
	/* Decides whose engine is meant, root's or the user's, and prints why setup cannot go on. May be NULL. */
	int (*look)(struct setup *setup);
	/* Puts what is missing into setup->then. */
	int (*edit)(struct setup *setup);
	/* After the file is written: does the rest or, with --dry-run, says what it would do. May be NULL. */
	int (*finish)(struct setup *setup);
	/* Before our programs go: makes the daemon work without them, and sets setup->released. May be NULL. */
	int (*release)(struct setup *setup);
	/* The same, whatever its file has: says what will not work. The daemon runs. May be NULL. */
	int (*leave)(const struct setup *setup);
	/* Says what else is needed, and what makes the daemon notice. NULL: it notices when it is restarted. */
	void (*advise)(const struct setup *setup);
};
extern const struct setup_engine setup_containerd, setup_crio, setup_docker, setup_podman, setup_vcuda;

/** Whether ctr-gpu's configuration has vCUDA's mode on. */
bool setup_vcuda_is_on(void);

/* ---- kubernetes ---- */

/** Finds setup->node, the engine of the node, and the file that its distribution wants. */
int kubernetes_choose(struct setup *setup);

/** Says what is left to do on the node. */
void kubernetes_advise(const struct setup *setup);

/* ---- all engines ---- */

/** A remark for the user, indented behind the name of the engine. */
void setup_print(const struct setup *setup, const char *format, ...) __attribute__((format(printf, 2, 3)));

/** Refuses a user who means an engine whose files are root's. */
int setup_refuse_user(const struct setup *setup);

/** Finds setup->daemon, as daemon_find() does. */
int setup_find_daemon(struct setup *setup, uid_t uid);

/** Return: the file that is changed unless another is named, owned by the caller; NULL without memory. */
char *setup_usual_path(const struct setup *setup);

/** Parses the text of an engine's file. @path: of the file, for the message. */
int setup_read(const struct setup *setup, const struct text_buffer *text, const char *path, json_t **ret);

/** Reads setup->found, or a file on top of it that the engine's own imports. */
int setup_read_config(struct setup *setup, const char *import);

/** Changes the text of the engine's file to @wanted, and keeps the rest as it is. */
int setup_write(const struct setup *setup, struct text_buffer *text, json_t *wanted);

/** Says that the daemon does not run or, after a change, what makes it notice. */
void setup_advise_restart(const struct setup *setup, bool changed, enum engine_step step);

/* ---- keys ---- */

/*
 * The keys that setup puts into an engine's parsed file, JSON or TOML, and takes out again: the runtime "nvidia" as a
 * whole, the default runtime, and the one that turns CDI on. A key is a path of json_at() in a section.
 */

/** Has setup->then say something. @value: stolen; NULL: without memory. */
int keys_put(struct setup *setup, const char *key, json_t *value);

/** As keys_put(), for the runtime and, if asked for, the default; unless the file has another's runtime. */
int keys_put_runtime(struct setup *setup, json_t *value);

/** As keys_put(), for CDI. It stays off if the administrator turned it off. @by_default: it is on if nothing is said */
int keys_put_cdi(struct setup *setup, bool by_default);

/** Return: the runtime "nvidia" in setup->then with everything that is said of it, borrowed; NULL. */
json_t *keys_runtime(const struct setup *setup);

/** Refuses to go on if another of the engine's files has a runtime "nvidia" that is not ours. */
int keys_check_others(const struct setup *setup);

/** Whether a runtime's program is ours, by whatever name and links; a bare one is what the daemon finds by it. */
bool keys_is_ours(const struct setup *setup, const char *program);

/** Whether the runtime "nvidia" has a program that is not ours. */
bool keys_is_taken(const struct setup *setup);

/** Whether both are equal, or missing. */
bool keys_same(const json_t *a, const json_t *b);

/**
 * keys_undo() - undo the change from @before to @after in a JSON file, but keep keys that were changed later
 *
 * Return: whether it kept such a key; -ENOMEM.
 */
int keys_undo(json_t *file, const json_t *before, const json_t *after);

/** Takes out keys that are recognizably ours, and a default that would name a missing runtime. Return: 0 or -ENOMEM. */
int keys_drop_ours(const struct setup_engine *engine, json_t *file);

/* ---- cdi ---- */

/*
 * The CDI specs that engines of every kind find GPUs by, for `--device nvidia.com/gpu=all`. They are the machine's and
 * serve all engines, so they go with the last engine that was set up.
 */

/** Writes a spec for each kind of adapter, unless one exists. Succeeds also on a host without a GPU. */
int setup_cdi_put(const struct setup *setup);

#define SETUP_CDI_OURS "ctr-gpu-*.json"

/** Removes those that ctr-gpu has written, of this name, with "*" for any part of it. */
int setup_cdi_remove(const struct setup *setup, const char *name);

/* ---- diff ---- */

/* What would change in a file, as `diff -u` shows it and patch(1) takes it. */

/** Writes the difference of two texts, or nothing for equal ones. @path: of the file, for the heading */
void diff_write(const struct text_buffer *before, const struct text_buffer *after, const char *path, FILE *file);
