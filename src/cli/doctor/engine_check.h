/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* An engine of this machine: what is here of it, and which of its doors would give a container a GPU. */

#include "cli/doctor/doctor.h"
#include "engines/config.h"
#include "engines/daemon.h"

struct engine_check {
	const struct doctor_context *examination;
	struct findings *findings; /* the examination's */
	const struct engine *engine;
	struct host_engine *seen; /* that of the findings */
	struct daemon daemon;
	struct rootfs root; /* the files that the daemon sees; ours if none runs */
	const char *sudo;   /* "sudo " before commands; "" for a user's own engine */
	const char *user;   /* "" or " --rootless" behind those of setup */
	char *version;      /* NULL: not known */
	char *command;      /* of engine_check_restart() */
	struct engine_config config;
	enum engine_cdi_state cdi;
	struct strv kinds; /* of CDI, where it reads other directories than the usual ones */
	bool reads_elsewhere;
	bool lost; /* its files have a runtime "nvidia", and it itself says that it has none */
	bool idle; /* its daemon does not run, and nobody would start it */
};

/**
 * engine_check_begin() - find an engine, its version and its configuration
 * @ret: ENGINE_CHECK_NONE
 *
 * Return: whether this machine has it.
 */
bool engine_check_begin(struct doctor_context *examination, const struct engine *engine, struct engine_check *ret);
void engine_check_clear(struct engine_check *look);
#define ENGINE_CHECK_NONE ((struct engine_check){.daemon = DAEMON_NONE, .root = ROOTFS_CLOSED})
#define _cleanup_engine_check_ _cleanup_(engine_check_clear)

/** Adds it to what was found, with its version and whether it runs, as look->seen. */
void engine_check_describe(struct engine_check *look);

/**
 * engine_check_add() - report a finding about the engine
 * @what:   behind the engine's name in the id; or the whole id, which has a dot
 * @closes: doors of the engine, bits by enum method
 */
void engine_check_add(struct engine_check *look, const char *what, enum severity severity, unsigned closes,
		      const char *format, ...) __attribute__((format(printf, 5, 6)));

/** Whether the engine would find a program: by its path, or by a name on the PATH of its daemon. */
bool engine_check_find_program(const struct engine_check *look, const char *path, struct program *ret);

/** Return: the command that restarts the engine, for a user to type; valid until the next call. */
const char *engine_check_restart(struct engine_check *look, enum engine_step step);

/** Says that the engine has a door. */
void engine_check_add_method(struct engine_check *look, enum method method);

/* Each says what closes doors of its kind. */
void engine_check_method_config(struct engine_check *look);
void engine_check_method_cdi(struct engine_check *look);
void engine_check_method_runtime(struct engine_check *look);
/** Of the JSON files in the hooks directories, later ones in the place of earlier ones of the same name. */
void engine_check_method_hooks(struct engine_check *look);

/** Says that it does not run, behind what would still be in the way if it did. */
void engine_check_running(struct engine_check *look);

/* Engines with rules of their own; they say nothing if the engine is not here. */
void check_docker(struct doctor_context *examination);
void check_docker_desktop(struct doctor_context *examination);
