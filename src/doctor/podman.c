/* SPDX-License-Identifier: Apache-2.0 */

/* Podman and CRI-O: a hook from a hooks directory, or CDI. */

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doctor/engine.h"
#include "doctor/file.h"
#include "doctor/package.h"
#include "engine/program.h"

#define HOOKS_USR "/usr/share/containers/oci/hooks.d"
#define HOOKS_ETC "/etc/containers/oci/hooks.d"

/* The strings between brackets behind a key of a TOML file, which may go over several lines; the last such key counts. */
static bool read_list(const char *text, const char *key, struct strv *ret)
{
	bool found = false;

	for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		const char *value = line + strspn(line, " \t"), *end;

		if (!str_has_prefix(value, key) || !strchr(" \t=", value[strlen(key)]))
			continue;
		end = strchr(value, ']');
		strv_clear(ret);
		found = true;
		for (value = strpbrk(value, "\"'"); value && end && value < end; value = strpbrk(value, "\"'")) {
			size_t length = strcspn(value + 1, "\"'");

			(void)strv_take(ret, strndup(value + 1, length));
			value += length + 1 + (value[length + 1] != '\0');
		}
	}
	return found;
}

/* What the files say that are read one after the other. */
struct configuration {
	struct strv hook_directories;
	bool runtime; /* "nvidia" is one, and its program is there */
};

static void configuration_clear(struct configuration *configuration)
{
	strv_clear(&configuration->hook_directories);
}
#define _cleanup_configuration_ _cleanup_(configuration_clear)

static bool is_program(const char *path)
{
	_cleanup_rootfs_ struct rootfs root = ROOTFS_CLOSED;
	_cleanup_program_ struct program program = {0};

	return rootfs_open(AT_FDCWD, "/", &root) == 0 && program_look(&root, path, &program);
}

/* `nvidia = ["/usr/bin/ctr-gpu-runtime"]` */
static void read_podman(const char *text, void *user)
{
	struct configuration *configuration = user;
	_cleanup_strv_ struct strv programs = {0};

	(void)read_list(text, "hooks_dir", &configuration->hook_directories);
	if (read_list(text, "nvidia", &programs))
		configuration->runtime = programs.count > 0 && is_program(programs.items[0]);
}

/* In the order of containers.conf(5), in which later files count more. */
static void find_podman(struct configuration *ret)
{
	static const char *const patterns[] = {
		"/usr/share/containers/containers.conf", "/etc/containers/containers.conf", "/etc/containers/containers.conf.d/*.conf",
	}, *const own[] = {"/.config/containers/containers.conf", "/.config/containers/containers.conf.d/*.conf"};
	const char *only = getenv("CONTAINERS_CONF"), *home = getenv("HOME");

	(void)strv_add(&ret->hook_directories, HOOKS_USR);
	if (only) {
		file_each(only, read_podman, ret);
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(patterns); i++)
		file_each(patterns[i], read_podman, ret);
	for (size_t i = 0; home && i < ARRAY_SIZE(own); i++) {
		_cleanup_free_ char *pattern = NULL;

		if (str_format(&pattern, "%s%s", home, own[i]) == 0)
			file_each(pattern, read_podman, ret);
	}
}

/* A table `[crio.runtime.runtimes.nvidia]`, in which is `runtime_path = "…"`. */
static void read_crio(const char *text, void *user)
{
	struct configuration *configuration = user;
	const char *table = strstr(text, "[crio.runtime.runtimes.nvidia]"), *path = table ? strstr(table, "runtime_path") : NULL;
	_cleanup_free_ char *program = NULL;

	(void)read_list(text, "hooks_dir", &configuration->hook_directories);
	path = path ? strchr(path, '"') : NULL;
	if (!path)
		return;
	program = strndup(path + 1, strcspn(path + 1, "\"\n"));
	configuration->runtime = program && is_program(program);
}

/* What both have in common. */
struct engine {
	const char *id, *name, *remedy;
	const char *const *packages;
	const char *cdi, *runtime; /* how a CDI device is asked for, and the runtime */
	bool gpus;       /* --gpus, by CDI, from version 5 on */
};

static void conclude(struct examination *examination, struct engines *engines, const struct engine *engine,
		     const struct configuration *configuration)
{
	_cleanup_free_ char *version = package_version(engine->packages);
	struct hooks hooks = {0};
	struct ways ways = {0};
	char name[48];

	hooks_look(examination, &configuration->hook_directories, &hooks);
	if (hooks.ours || hooks.theirs)
		ways_add(&ways, "-e NVIDIA_VISIBLE_DEVICES=all (%s hook)", hooks.ours ? "ctr-gpu's" : "another toolkit's");
	if (configuration->runtime)
		ways_add(&ways, "%s", engine->runtime);
	if (engine->gpus && version_number(version) >= VERSION(5, 0) && strv_contains(&examination->cdi_kinds, "nvidia.com/gpu"))
		ways_add(&ways, "--gpus");
	ways_add_cdi(&ways, examination, engine->cdi);
	(void)snprintf(name, sizeof(name), "%s%s%.24s", engine->name, version ? " " : "", version ? version : "");
	engine_conclude(examination, engines, engine->id, name, &ways, engine->remedy);
}

void engine_podman(struct examination *examination, struct engines *engines)
{
	static const char *const packages[] = {"podman", NULL};
	static const struct engine podman = {
		.id = "podman", .name = "Podman", .remedy = "sudo ctr-gpu setup podman", .packages = packages, .cdi = "--device",
		.runtime = "--runtime=nvidia", .gpus = true,
	};
	_cleanup_configuration_ struct configuration configuration = {0};

	if (!program_is_here("podman"))
		return;
	find_podman(&configuration);
	conclude(examination, engines, &podman, &configuration);
}

void engine_crio(struct examination *examination, struct engines *engines)
{
	static const char *const packages[] = {"cri-o", NULL};
	static const struct engine crio = {
		.id = "crio", .name = "CRI-O", .remedy = "sudo ctr-gpu setup crio", .packages = packages, .cdi = "CDI",
		.runtime = "runtime class nvidia",
	};
	_cleanup_configuration_ struct configuration configuration = {0};

	if (!program_is_here("crio"))
		return;
	(void)strv_add(&configuration.hook_directories, HOOKS_USR);
	(void)strv_add(&configuration.hook_directories, HOOKS_ETC);
	file_each("/etc/crio/crio.conf", read_crio, &configuration);
	file_each("/etc/crio/crio.conf.d/*", read_crio, &configuration);
	conclude(examination, engines, &crio, &configuration);
}
