/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* An engine of this machine: what is here of it, and which of its doors would give a container a GPU. */

#include "cli/doctor/doctor.h"
#include "engines/config.h"
#include "engines/daemon_root.h"
#include "engines/program.h"

struct look {
	struct examination *examination;
	struct findings *findings; /* the examination's */
	const struct engine *engine;
	struct host_engine *seen; /* that of the findings */
	struct daemon daemon;
	struct rootfs root; /* the files that the daemon sees; ours if none runs */
	bool snap, rootless;
	char *version; /* NULL: not known */
	struct engine_config config;
	enum engine_cdi_state cdi;
};

/**
 * look_begin() - find an engine, its version and its configuration
 * @ret: begins as it may be cleared
 *
 * Return: whether this machine has it.
 */
bool look_begin(struct examination *examination, const struct engine *engine, struct look *ret);
void look_clear(struct look *look);
#define _cleanup_look_ _cleanup_(look_clear)

/** Adds it to what was found, with its version and whether it runs, as look->seen. */
void look_describe(struct look *look);

/** Adds a finding "ENGINE.@what", that closes doors of the engine: bits by enum door. */
void look_add(struct look *look, const char *what, enum severity severity, unsigned closes, const char *format, ...)
	__attribute__((format(printf, 5, 6)));

/** Whether the engine would find a program: by its path, or by a name on the PATH of its daemon. */
bool look_find_program(const struct look *look, const char *path, struct program *ret);

/** The command that restarts the engine, for a user to type. Return: owned by the caller; NULL without memory. */
char *look_restart(const struct look *look, enum engine_step step);

/** The door by CDI, with a kind of device that CDI specs describe: the one that most images are made for. */
void look_add_cdi_door(struct look *look, const char *option);

/* Each says what closes doors of its kind. */
void look_judge_config(struct look *look);
void look_judge_cdi(struct look *look);
/** Return: whether there is a runtime "nvidia" whose program is there. */
bool look_judge_runtime(struct look *look);
/** Of the JSON files in the hooks directories, later ones in the place of earlier ones of the same name. */
void look_judge_hooks(struct look *look);

/* Engines with rules of their own; they say nothing if the engine is not here. */
void check_docker(struct examination *examination);
void check_docker_desktop(struct examination *examination);
