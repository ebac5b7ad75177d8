/* SPDX-License-Identifier: Apache-2.0 */

/* Podman and CRI-O: a hook from a hooks directory, or CDI. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doctor/engine.h"
#include "doctor/file.h"
#include "doctor/package.h"
#include "doctor/program.h"

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

static void read_file(const char *path, struct strv *directories)
{
	_cleanup_free_ char *text = file_text(path);

	if (text)
		(void)read_list(text, "hooks_dir", directories);
}

/* In the order of containers.conf(5), in which later files count more. */
static void find_hook_directories(struct strv *ret)
{
	const char *only = getenv("CONTAINERS_CONF"), *home = getenv("HOME");
	_cleanup_free_ char *own = NULL;

	(void)strv_add(ret, HOOKS_USR);
	if (only) {
		read_file(only, ret);
		return;
	}
	read_file("/usr/share/containers/containers.conf", ret);
	read_file("/etc/containers/containers.conf", ret);
	if (home && str_format(&own, "%s/.config/containers/containers.conf", home) == 0)
		read_file(own, ret);
}

/* What both have in common. */
struct engine {
	const char *id, *name;
	const char *const *packages;
	const char *cdi; /* how a CDI device is asked for */
	bool gpus;       /* --gpus, by CDI, from version 5 on */
};

static void conclude(struct examination *examination, struct engines *engines, const struct engine *engine, const struct strv *directories)
{
	_cleanup_free_ char *version = package_version(engine->packages);
	struct hooks hooks = {0};
	struct ways ways = {0};
	char name[48];

	hooks_look(examination, directories, &hooks);
	if (hooks.ours || hooks.theirs)
		ways_add(&ways, "-e NVIDIA_VISIBLE_DEVICES=all (%s hook)", hooks.ours ? "ctr-gpu's" : "another toolkit's");
	if (engine->gpus && version_number(version) >= VERSION(5, 0) && strv_contains(&examination->cdi_kinds, "nvidia.com/gpu"))
		ways_add(&ways, "--gpus");
	ways_add_cdi(&ways, examination, engine->cdi);
	(void)snprintf(name, sizeof(name), "%s%s%.24s", engine->name, version ? " " : "", version ? version : "");
	engine_conclude(examination, engines, engine->id, name, &ways, "Install ctr-gpu with its " HOOKS_USR "/ctr-gpu.json");
}

void engine_podman(struct examination *examination, struct engines *engines)
{
	static const char *const packages[] = {"podman", NULL};
	static const struct engine podman = {.id = "podman", .name = "Podman", .packages = packages, .cdi = "--device", .gpus = true};
	_cleanup_strv_ struct strv directories = {0};

	if (!program_is_here("podman"))
		return;
	find_hook_directories(&directories);
	conclude(examination, engines, &podman, &directories);
}

void engine_crio(struct examination *examination, struct engines *engines)
{
	static const char *const packages[] = {"cri-o", NULL};
	static const struct engine crio = {.id = "crio", .name = "CRI-O", .packages = packages, .cdi = "CDI"};
	_cleanup_strv_ struct strv directories = {0};

	if (!program_is_here("crio"))
		return;
	if (strv_add(&directories, HOOKS_USR) == 0 && strv_add(&directories, HOOKS_ETC) == 0)
		conclude(examination, engines, &crio, &directories);
}
