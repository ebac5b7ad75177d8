/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Container engines, and the ways by which each can give a container a GPU. */

#include "doctor/doctor.h"
#include "engine/daemon_root.h"

/* Ways there are, as a user types them: "--gpus", "--device nvidia.com/gpu=all". */
struct ways {
	char text[160];
	size_t count;
};

void ways_add(struct ways *ways, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* What a check of an engine leaves behind. */
struct engines {
	size_t found, ready;
};

/**
 * engine_conclude() - one line for an engine: how it can be used, or how to set it up
 * @id:     "docker", the subject
 * @name:   "Docker 28.1.1, running"
 * @remedy: how to set it up
 */
void engine_conclude(struct examination *examination, struct engines *engines, const char *id, const char *name, const struct ways *ways,
		     const char *remedy);

/** Adds "--device KIND=all" for a kind of device that CDI specs describe. */
void ways_add_cdi(struct ways *ways, const struct examination *examination, const char *option);

/**
 * engine_find_daemon() - that of root, or else of whoever asks; others' count not at all
 * @wanted:   as for daemon_find()
 * @ret_root: the files that it sees, ours if there is none
 *
 * Return: 0, also if there is none; negative errno if not even "/" can be opened.
 */
int engine_find_daemon(const char *name, bool (*wanted)(const struct daemon *daemon), struct daemon *ret_daemon, struct rootfs *ret_root);

/* Each says nothing if its engine is not here. */
void engine_docker(struct examination *examination, struct engines *engines);
void engine_podman(struct examination *examination, struct engines *engines);
void engine_containerd(struct examination *examination, struct engines *engines);
void engine_crio(struct examination *examination, struct engines *engines);
void engine_lxc(struct examination *examination, struct engines *engines);
void engine_apptainer(struct examination *examination, struct engines *engines);

/* ---- hooks.d, which Podman and CRI-O share ---- */

struct hooks {
	bool ours, theirs; /* active ones, by whose program they run */
};

/** Looks at the JSON files of a directory, later ones in the place of earlier ones of the same name; says what is wrong with them. */
void hooks_look(struct examination *examination, const struct strv *directories, struct hooks *ret);
