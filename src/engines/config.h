/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What an engine's configuration says that matters to GPUs, from the files that the engine reads. */

#include <jansson.h>
#include <stdbool.h>

#include "base/str.h"
#include "engines/engine.h"
#include "engines/text.h"
#include "root/rootfs.h"

/* ---- config ---- */

struct engine_config {
	char *path;            /* the file, where the engine reads only one; else NULL */
	char *invalid;         /* a file that the engine cannot read, and why; NULL: none */
	char *unread;          /* a file that we could not read, and why; NULL: none */
	char *runtime;         /* the program of the runtime "nvidia"; NULL: the runtime is missing */
	char *runtime_file;    /* the file that says so; NULL */
	char *default_runtime; /* NULL: the engine's own */
	int cdi;               /* 0: off, 1: on, -1: not said */
	struct strv hook_directories;
	struct strv cdi_directories;     /* none: the usual ones, /etc/cdi and /var/run/cdi */
	bool appends_hooks, appends_cdi; /* such a list of another file is added to them */
	json_t *runtimes;                /* by their names; NULL: no file was read */
	json_t *json;                    /* all of a file that may import others; NULL */
};

void engine_config_clear(struct engine_config *config);
#define _cleanup_engine_config_ _cleanup_(engine_config_clear)

/**
 * engine_config_read() - read an engine's files; later ones count more
 * @daemon: of the engine, or what daemon_find() says of none
 * @root:   the files that it sees
 *
 * A file that is missing sets nothing. A file that cannot be read is named in @ret as unread.
 *
 * Return: 0 or -ENOMEM.
 */
int engine_config_read(const struct engine *engine, const struct daemon *daemon, const struct rootfs *root,
		       struct engine_config *ret);

/** Whether the engine reads @other after @path, a file of its own that may not be there yet. */
bool engine_config_reads_later(const struct engine *engine, const struct daemon *daemon, const char *other,
			       const char *path);

/** Reads another file on top of what @config has. Return: 0 or -ENOMEM. */
int engine_config_read_file(const struct engine *engine, const struct rootfs *root, const char *path,
			    struct engine_config *config);

/**
 * engine_config_query() - put what the engine has, or makes of its files, in their place, where it can say it
 * @ret_cdi: what it says of CDI, as engine_config.cdi; stays if it says nothing
 *
 * Return: whether it has no runtime "nvidia" although the files have one.
 */
bool engine_config_query(const struct engine *engine, const struct daemon *daemon, struct engine_config *config,
			 int *ret_cdi);

/**
 * engine_config_newer_file() - a file that was changed since the daemon, which reads it only then, was started
 *
 * Return: its path, owned by the caller; NULL: there is none, or it is not known.
 */
char *engine_config_newer_file(const struct engine *engine, const struct daemon *daemon);

/**
 * engine_config_find_import() - the last file that a file imports and that has something of the sections
 * @path: of the file, beside which relative patterns are
 * @json: what it says
 *
 * Return: a path, owned by the caller; NULL.
 */
char *engine_config_find_import(const struct engine *engine, const char *path, const json_t *json);

/** Whether a file of containerd turns the CRI plugin off, whose the runtimes are. */
bool engine_config_has_no_cri(const json_t *json);

/** Return: the program of a runtime, as a file has that, borrowed; NULL. Of several, the first that is there. */
const char *engine_config_program(const struct engine *engine, const json_t *runtime);

/** Return: the sections of the engine's files, "" for those without; a NULL at the end. */
const char *const *engine_config_sections(const struct engine *engine);

/** Copies the texts of an array. Return: 0 or -ENOMEM. */
int engine_config_copy_list(const json_t *array, struct strv *ret);

/** Appends files that match a pattern of glob(7), also hidden ones; a path without "*" itself. Return: 0 or -ENOMEM. */
int engine_config_expand(const char *pattern, struct strv *ret);

/** Reads the text of such a file. Return: 0 and an object; -EINVAL with @ret_error filled in; -ENOMEM. */
int engine_config_parse(const struct engine *engine, const struct text_buffer *text, json_t **ret,
			struct text_buffer_error *ret_error);

/** Has it say something else, as far as it can; the caller reads it again. Return: 0; -EINVAL; -ENOMEM. */
int engine_config_write(const struct engine *engine, struct text_buffer *text, json_t *wanted);

/* ---- toolkit config ---- */

/*
 * /etc/nvidia-container-runtime/config.toml of a machine that moves to ctr-gpu, which does not read it: the settings
 * that change something and have another name here, another default, or no successor.
 */

#define NVIDIA_CONFIG "/etc/nvidia-container-runtime/config.toml"

struct nvidia_setting {
	const char *key;   /* as people write it: "nvidia-container-cli.root" */
	const char *value; /* as the file has it; NULL: it is not there, and NVIDIA's default is another than ours */
	const char *here;  /* what to write into /etc/ctr-gpu/config.json, or what there is instead */
	bool has_successor;
};

/**
 * toolkit_config_each() - the settings that matter
 *
 * Those that /etc/ctr-gpu/config.json has are left out. Nothing is told of a file that is not there or not valid.
 */
void toolkit_config_each(void (*visit)(const struct nvidia_setting *setting, void *user), void *user);
