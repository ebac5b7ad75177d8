/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Container engines, and the doors by which each can give a container a GPU: facts. Findings close doors; see verdict.h. */

#include <jansson.h>

#include "base/str.h"
#include "cli/doctor/finding.h"
#include "engines/daemon_root.h"

struct examination;

struct host_engine {
	char *id;           /* "docker" */
	char *label;        /* "Docker" */
	char *state;        /* " 28.1.1, running" */
	char *doors[DOORS]; /* as a user types them, "--gpus all"; NULL: the engine has no such door */
};

struct engines {
	struct host_engine *items;
	size_t count;
	bool incomplete;
};

void engines_clear(struct engines *engines);

/** Appends an engine without doors. Return: it, until the next call; what fails shows in engines->incomplete. */
struct host_engine *engines_add(struct engines *engines, const char *id, const char *label, const char *state_format, ...)
	__attribute__((format(printf, 4, 5)));

/** Says that an engine has a door. */
void engine_has(struct host_engine *engine, enum door door, const char *format, ...) __attribute__((format(printf, 3, 4)));

/** The door by CDI, with the kind of device that CDI specs describe; where there are several, the one that most images are made for. */
void engine_has_cdi(struct host_engine *engine, const struct examination *examination, const char *option);

/** Return: a new array; NULL if there is no memory. */
json_t *engines_to_json(const struct engines *engines);
/** Appends what engines_to_json() made. Return: 0; -EINVAL; -ENOMEM. */
int engines_from_json(const json_t *array, struct engines *engines);

/**
 * engine_find_daemon() - that of root, or else of whoever asks; others' count not at all
 * @wanted:   as for daemon_find()
 * @ret_root: the files that it sees, ours if there is none
 *
 * Return: 0, also if there is none; negative errno if not even "/" can be opened.
 */
int engine_find_daemon(const char *name, bool (*wanted)(const struct daemon *daemon), struct daemon *ret_daemon, struct rootfs *ret_root);

/* Each says nothing if its engine is not here. */
void check_docker(struct examination *examination);
void check_docker_desktop(struct examination *examination);
void check_podman(struct examination *examination);
void check_containerd(struct examination *examination);
void check_crio(struct examination *examination);
void check_lxc(struct examination *examination);
void check_apptainer(struct examination *examination);

/* ---- hooks.d, which Podman and CRI-O share ---- */

/**
 * hooks_look() - look at the JSON files of directories, later ones in the place of earlier ones of the same name
 *
 * Says what is wrong with them, and what that closes.
 */
void hooks_look(struct examination *examination, const char *engine, const struct strv *directories);
