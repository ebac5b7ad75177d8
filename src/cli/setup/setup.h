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

#include "cli/session.h"
#include "cli/setup/saved_state.h"
#include "engines/engine.h"

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
	char *runtime;      /* ctr-gpu-runtime, an absolute path */
	const char *runtime_given;
	bool dry_run, remove, replace, set_default, rootless;
	bool all;             /* each engine that was set up, since ctr-gpu itself is to go */
	bool released;        /* the daemon has let go of it already */
	struct daemon daemon; /* the one that this is for, if it runs */
	char *path;           /* of the file to change */
	bool unreached;       /* the daemon does not read that file, or cannot run our program; that has been said */
	bool needs_restart;   /* reloading is not enough for what was changed */
	struct saved_state state;
	json_t *entry;           /* of the state; NULL: the file is not remembered */
	struct config_file file; /* as it is */
	struct text_buffer to;   /* what is to be in it */
	bool gone;               /* it is to be removed */
	json_t *now, *then;      /* what both say */
	json_t *others;          /* what the engine's other files say, by their paths; later ones count more */
};

struct setup_engine {
	const struct engine *facts;
	const char *file, *user_file; /* of our own; NULL: the engine's first is changed */
	const char *beside; /* the path of what is put in with the runtime, and stays if that stays; NULL: nothing */
	/* Decides whose engine is meant, and says whatever forbids to go on. May be NULL. */
	int (*look)(struct setup *setup);
	/* Puts what is missing into what the file says. */
	int (*edit)(struct setup *setup, json_t *file);
	/*
	 * Whether its daemon notices what is put at this path of the file, or removed from it, only when it starts;
	 * NULL: always so.
	 */
	bool (*restarts_for)(const char *path, bool remove);
	/* Before our programs go: makes the daemon work without them, and sets setup->released. May be NULL. */
	int (*release)(struct setup *setup);
	/* Says what else is needed, and what makes the daemon notice. @changed: there is something to notice. */
	void (*advise)(struct setup *setup, bool changed);
};
extern const struct setup_engine setup_containerd, setup_crio, setup_docker, setup_podman;

/** A remark for the user, indented behind the name of the engine. */
void setup_print(const struct setup *setup, const char *format, ...) __attribute__((format(printf, 2, 3)));

/** Whether a user means an engine whose files are root's. Return: 0; the exit status after a message was printed. */
int setup_refuse_user(const struct setup *setup);

/** Finds setup->daemon, as daemon_find() does. */
int setup_find_daemon(struct setup *setup, uid_t uid);

/** What the text of an engine's file says. @path: of the file, for the message. */
int setup_read(const struct setup *setup, const struct text_buffer *text, const char *path, json_t **ret);

/** Has a text of the engine's file say this, and leaves everything else as it is. */
int setup_write(const struct setup *setup, struct text_buffer *text, json_t *wanted);

/** Says that the daemon does not run or, after a change, what makes it notice. */
void setup_advise_restart(struct setup *setup, bool changed);
