/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* An engine of this machine: what is here of it, and which of its doors would give a container a GPU. */

#include "cli/doctor/doctor.h"
#include "engines/config.h"
#include "engines/daemon_root.h"
#include "engines/program.h"

struct look {
	const struct examination *examination;
	struct findings *findings; /* the examination's */
	const struct engine *engine;
	struct host_engine *seen; /* that of the findings */
	struct daemon daemon;
	struct rootfs root; /* the files that the daemon sees; ours if none runs */
	const char *sudo;   /* "sudo " before commands; "" for a user's own engine */
	const char *user;   /* "" or " --rootless" behind those of setup */
	char *version;      /* NULL: not known */
	char *command;      /* of look_restart() */
	struct engine_config config;
	enum engine_cdi_state cdi;
};

/**
 * look_begin() - find an engine, its version and its configuration
 * @ret: LOOK_NONE
 *
 * Return: whether this machine has it.
 */
bool look_begin(struct examination *examination, const struct engine *engine, struct look *ret);
void look_clear(struct look *look);
#define LOOK_NONE ((struct look){.daemon = DAEMON_NONE, .root = ROOTFS_CLOSED})
#define _cleanup_look_ _cleanup_(look_clear)

/** Adds it to what was found, with its version and whether it runs, as look->seen. */
void look_describe(struct look *look);

/**
 * look_add() - report a finding about the engine
 * @what:   behind the engine's name in the id; or the whole id, which has a dot
 * @closes: doors of the engine, bits by enum door
 */
void look_add(struct look *look, const char *what, enum severity severity, unsigned closes, const char *format, ...)
	__attribute__((format(printf, 5, 6)));

/** Whether the engine would find a program: by its path, or by a name on the PATH of its daemon. */
bool look_find_program(const struct look *look, const char *path, struct program *ret);

/** Return: the command that restarts the engine, for a user to type; valid until the next call. */
const char *look_restart(struct look *look, enum engine_step step);

/** Says that the engine has a door. */
void look_add_door(struct look *look, enum door door);

/* Each says what closes doors of its kind. */
void look_judge_config(struct look *look);
void look_judge_cdi(struct look *look);
void look_judge_runtime(struct look *look);
/** Of the JSON files in the hooks directories, later ones in the place of earlier ones of the same name. */
void look_judge_hooks(struct look *look);

/* Engines with rules of their own; they say nothing if the engine is not here. */
void check_docker(struct examination *examination);
void check_docker_desktop(struct examination *examination);
