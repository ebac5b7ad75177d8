/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Checks whether a container would get a GPU here, and what to do first if not. For `ctr-gpu doctor`. */

#include <stdio.h>

#include "base/str.h"
#include "ctr-gpu.h"
#include "engines/config.h"
#include "engines/daemon.h"
#include "lib/context.h"
#include "model/check.h"
#include "model/finding.h"
#include "model/plan.h"

/* ---- doctor ---- */

/* The id of check_image()'s finding about a directory that it cannot read. */
#define IMAGE_UNREADABLE "image.unreadable"

/** The kinds of specs of GPUs that can be used, in these directories. Return: 0; negative errno. */
int cdi_list_kinds(const struct doctor_context *examination, const struct strv *places, struct strv *ret);

/**
 * cdi_find_spec() - the first spec of a kind on this machine, whether or not engines can use it
 * @ret_path: of its file, owned by the caller
 * @ret_ours: whether this program has written it
 *
 * Return: 0; -ENOENT; another negative errno.
 */
int cdi_find_spec(struct ctr_gpu_context *context, const char *kind, char **ret_path, bool *ret_ours);

/** Sets the kinds of GPU devices by a host that was read already. */
void machine_take_kinds(struct doctor_context *examination);

/** Says which of a plan's files are on mounts that nothing can be executed from. */
void driver_check_noexec(struct findings *findings, const struct plan *plan);

/** Says what this machine lacks and an image would have to have. */
void driver_check_missing(struct findings *findings, const struct plan *plan);

void check_machine(struct doctor_context *examination);
void check_adapters(struct doctor_context *examination);
void check_adapter_notes(struct doctor_context *examination);
void check_driver(struct doctor_context *examination);
void check_vcuda(struct doctor_context *examination);
void check_kernel(struct doctor_context *examination);
void check_cdi(struct doctor_context *examination);
void check_engines(struct doctor_context *examination);
void check_kubernetes(struct doctor_context *examination);
void check_rootless(struct doctor_context *examination);
void check_containers(struct doctor_context *examination);
void check_security(struct doctor_context *examination);
void check_image(struct doctor_context *examination);
void check_installation(struct doctor_context *examination);

/* ---- engine check ---- */

/* Inspects one engine: version, configuration, and which methods work. */

struct engine_check {
	const struct doctor_context *examination;
	struct findings *findings; /* the examination's */
	const struct engine *engine;
	struct host_engine *seen; /* its entry in the findings */
	struct daemon daemon;
	struct rootfs root; /* the files that the daemon sees; ours if none runs */
	const char *sudo;   /* "sudo " before commands; "" for a user's own engine */
	const char *user;   /* "" or " --rootless", behind setup's commands */
	char *version;      /* NULL: not known */
	char *command;      /* of engine_check_restart() */
	struct engine_config config;
	enum engine_cdi_state cdi;
	struct strv kinds; /* of CDI, where it reads other directories than the usual ones */
	bool reads_elsewhere;
	bool lost; /* its files have a runtime "nvidia", and the running daemon does not */
};

/**
 * engine_check_begin() - find an engine, its version and its configuration
 * @ret: ENGINE_CHECK_NONE
 *
 * Return: whether this machine has it.
 */
bool engine_check_begin(struct doctor_context *examination, const struct engine *engine, struct engine_check *ret);
void engine_check_clear(struct engine_check *check);
#define ENGINE_CHECK_NONE ((struct engine_check){.daemon = DAEMON_NONE, .root = ROOTFS_CLOSED})
#define _cleanup_engine_check_ _cleanup_(engine_check_clear)

/** Adds it to what was found, with its version and whether it runs, as look->seen. */
void engine_check_describe(struct engine_check *check);

/**
 * engine_check_add() - report a finding about the engine
 * @what:   behind the engine's name in the id; or the whole id, which has a dot
 * @closes: methods of the engine, bits by enum method
 */
void engine_check_add(struct engine_check *check, const char *what, enum severity severity, unsigned closes,
		      const char *format, ...) __attribute__((format(printf, 5, 6)));

/** Whether the engine would find a program: by its path, or by a name on the PATH of its daemon. */
bool engine_check_find_program(const struct engine_check *check, const char *path, struct program *ret);

/** Return: the command that restarts the engine, for a user to type; valid until the next call. */
const char *engine_check_restart(struct engine_check *check, enum engine_step step);

/** Return: the kinds of CDI's devices in the specs that it reads, borrowed. */
const struct strv *engine_check_kinds(const struct engine_check *check);

/** Says that the engine has a method. */
void engine_check_add_method(struct engine_check *check, enum method method);

/* Each says what closes methods of its kind. */
void engine_check_method_config(struct engine_check *check);
void engine_check_method_cdi(struct engine_check *check);
void engine_check_method_runtime(struct engine_check *check);
/** Of the JSON files in the hooks directories, later ones in the place of earlier ones of the same name. */
void engine_check_method_hooks(struct engine_check *check);

/** Says that it was started before its file was changed, if it is one that cannot be asked. */
void engine_check_age(struct engine_check *check);

/** Says that it does not run, behind what would still be in the way if it did. */
void engine_check_running(struct engine_check *check);

/* Engines with rules of their own; they say nothing if the engine is not here. */
void check_docker(struct doctor_context *examination);
void check_docker_desktop(struct doctor_context *examination);

/* ---- summary ---- */

/*
 * Whether an engine gives a container a GPU that works, by which method, and why not by the others. It follows from the
 * engine's methods and from the findings that close them, and from nothing else.
 */

/* Of one engine. */
struct summary {
	const struct host_engine *engine;
	const struct finding *closed_by[METHODS]; /* NULL: open, or the engine does not have this method */
	unsigned open;                            /* methods, bits by enum method */
	enum severity severity;                   /* warning: a method is broken; note: not set up; problem: all are */
	bool works;                               /* a method is open, and nothing of the machine is in the way */
};

struct summary summary_make(const struct findings *findings, const struct host_engine *engine);

/** Return: the finding to see to first where nothing works; NULL where something does. */
const struct finding *summary_first(const struct findings *findings);

/**
 * summary_text() - "yes by --gpus all; by --device KIND=all no, because …"
 * @brief: without what is merely not set up, if a method is open, and without what the machine's own problem closes
 *
 * Return: owned by the caller; NULL without memory.
 */
char *summary_text(const struct findings *findings, const struct summary *summary, bool brief);

/** Whether something is wrong with the engine itself: it has a method that is broken, and not merely closed. */
bool summary_is_broken(const struct summary *summary);

/** What to do: the first such finding that the verdict names. Return: borrowed; NULL: nothing. */
const char *summary_remedy(const struct summary *summary);

/** Return: an array of {id, name, works, doors: [{id, use, works, because}]}; NULL without memory. */
json_t *summaries_to_json(const struct findings *findings);
