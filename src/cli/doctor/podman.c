/* SPDX-License-Identifier: Apache-2.0 */

/* Podman and CRI-O: a hook from a hooks directory, a runtime, or CDI. */

#include <fcntl.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "cli/doctor/doctor.h"
#include "cli/doctor/file.h"
#include "engines/engine.h"
#include "engines/package.h"
#include "engines/program.h"
#include "engines/toml_text.h"

#define HOOKS_USR "/usr/share/containers/oci/hooks.d"
#define HOOKS_ETC "/etc/containers/oci/hooks.d"

/* How each says the same things in its TOML files. */
struct dialect {
	const char *id, *label;
	const char *const *packages;
	const char *hooks_dir, *runtime, *default_runtime; /* paths of toml_text.h */
	const char *use_runtime, *use_cdi;                 /* as a user types them */
};

/* What the files say that are read one after the other. */
struct configuration {
	const struct dialect *dialect;
	struct strv hook_directories;
	char *runtime;         /* the program of "nvidia"; NULL: there is no such runtime */
	char *default_runtime; /* NULL: the engine's own */
	char *invalid;         /* a file that cannot be read; NULL: none */
};

static void configuration_clear(struct configuration *configuration)
{
	strv_clear(&configuration->hook_directories);
	free(configuration->runtime);
	free(configuration->default_runtime);
	free(configuration->invalid);
}
#define _cleanup_configuration_ _cleanup_(configuration_clear)

static void take_string(const struct text *text, const char *path, char **value)
{
	char *string;

	if (toml_text_get_string(text, path, &string) < 0)
		return;
	free(*value);
	*value = string;
}

/* CRI-O has a path, `runtime_path = "…"`, Podman a list of paths, `nvidia = ["…"]`, of which the first that is there counts. */
static void take_runtime(const struct text *text, struct configuration *configuration)
{
	_cleanup_json_ json_t *list = NULL;

	if (toml_text_get_list(text, configuration->dialect->runtime, &list) == 0) {
		const char *chosen = NULL;

		for (size_t i = json_array_size(list); i-- > 0;)
			if (!chosen || file_exists(json_string_value(json_array_get(list, i))))
				chosen = json_string_value(json_array_get(list, i));
		free(configuration->runtime);
		configuration->runtime = chosen ? strdup(chosen) : NULL;
	} else {
		take_string(text, configuration->dialect->runtime, &configuration->runtime);
	}
}

static void read_file(const char *path, struct configuration *configuration)
{
	_cleanup_free_ char *data = file_text(path);
	const struct text text = {data, data ? strlen(data) : 0};
	_cleanup_json_ json_t *directories = NULL;
	struct text_error error;

	if (!data)
		return;
	if (toml_text_check(&text, &error) < 0) {
		free(configuration->invalid);
		(void)str_format(&configuration->invalid, "%s:%zu:%zu: %s", path, error.line, error.column, error.reason);
		return;
	}
	if (toml_text_get_list(&text, configuration->dialect->hooks_dir, &directories) == 0) {
		strv_clear(&configuration->hook_directories);
		for (size_t i = 0; i < json_array_size(directories); i++)
			(void)strv_add(&configuration->hook_directories, json_string_value(json_array_get(directories, i)));
	}
	take_string(&text, configuration->dialect->default_runtime, &configuration->default_runtime);
	take_runtime(&text, configuration);
}

static void read_files(const char *pattern, struct configuration *configuration)
{
	glob_t found = {0};

	if (glob(pattern, 0, NULL, &found) == 0)
		for (size_t i = 0; i < found.gl_pathc; i++)
			read_file(found.gl_pathv[i], configuration);
	globfree(&found);
}

/* In the order of containers.conf(5), in which later files count more. */
static void read_podman(struct configuration *configuration)
{
	static const char *const patterns[] = {
		"/usr/share/containers/containers.conf", "/etc/containers/containers.conf", "/etc/containers/containers.conf.d/*.conf",
	}, *const own[] = {"/.config/containers/containers.conf", "/.config/containers/containers.conf.d/*.conf"};
	const char *only = getenv("CONTAINERS_CONF"), *home = getenv("HOME");

	(void)strv_add(&configuration->hook_directories, HOOKS_USR);
	if (only) {
		read_file(only, configuration);
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(patterns); i++)
		read_files(patterns[i], configuration);
	for (size_t i = 0; home && i < ARRAY_SIZE(own); i++) {
		_cleanup_free_ char *pattern = NULL;

		if (str_format(&pattern, "%s%s", home, own[i]) == 0)
			read_files(pattern, configuration);
	}
}

static bool is_program(const char *path)
{
	_cleanup_rootfs_ struct rootfs root = ROOTFS_CLOSED;
	_cleanup_program_ struct program program = {0};

	if (rootfs_open(AT_FDCWD, "/", &root) < 0)
		return false;
	return strchr(path, '/') ? program_look(&root, path, &program) : program_find(&root, PROGRAM_PATH, path, &program);
}

static void judge_runtime(struct findings *findings, const struct configuration *configuration)
{
	const struct dialect *dialect = configuration->dialect;
	_cleanup_free_ char *id = NULL;
	bool is_default = configuration->default_runtime && streq(configuration->default_runtime, "nvidia");

	if (configuration->runtime && is_program(configuration->runtime))
		return;
	if (str_format(&id, "%s.%s", dialect->id, configuration->runtime || is_default ? "runtime" : "no-runtime") < 0) {
		findings->incomplete = true;
		return;
	}
	if (configuration->runtime)
		findings_add(findings, id, SEVERITY_PROBLEM, "the program of its runtime nvidia, %s, is not there", configuration->runtime);
	else if (is_default)
		findings_add(findings, id, SEVERITY_PROBLEM, "its default runtime is nvidia, and there is no such runtime");
	else
		findings_add(findings, id, SEVERITY_NOTE, "it has no runtime nvidia");
	findings_advise(findings, "sudo ctr-gpu setup %s%s", configuration->runtime ? "--replace " : "", dialect->id);
	findings_close(findings, dialect->id, is_default ? ALL_DOORS : DOOR(RUNTIME));
}

static void judge_files(struct findings *findings, const struct configuration *configuration)
{
	_cleanup_free_ char *id = NULL;

	if (!configuration->invalid || str_format(&id, "%s.config", configuration->dialect->id) < 0)
		return;
	findings_add(findings, id, SEVERITY_PROBLEM, "%s", configuration->invalid);
	findings_advise(findings, "Correct that line: %s does not start with it.", configuration->dialect->label);
	findings_close(findings, configuration->dialect->id, ALL_DOORS);
}

static struct host_engine *add(struct examination *examination, const struct dialect *dialect, const char *version)
{
	struct host_engine *engine = engines_add(&examination->engines, dialect->id, dialect->label, "%s%.24s", version ? " " : "", version ? version : "");

	engine_has(engine, DOOR_HOOK, "-e NVIDIA_VISIBLE_DEVICES=all");
	engine_has(engine, DOOR_RUNTIME, "%s", dialect->use_runtime);
	engine_has_cdi(engine, examination, dialect->use_cdi);
	return engine;
}

static void judge(struct examination *examination, const struct configuration *configuration)
{
	hooks_look(examination, configuration->dialect->id, &configuration->hook_directories);
	judge_runtime(&examination->findings, configuration);
	judge_files(&examination->findings, configuration);
}

/* By version 4.1 of Podman --device takes CDI's names, by 5.0 --gpus is one of them. */
static void judge_podman_version(struct examination *examination, struct host_engine *engine, const char *version)
{
	if (engine_version_number(version) >= ENGINE_VERSION(5, 0)) {
		engine_has(engine, DOOR_GPUS, "--gpus all");
	} else if (engine_version_number(version) > 0 && engine_version_number(version) < ENGINE_VERSION(4, 1)) {
		findings_add(&examination->findings, "podman.no-cdi", SEVERITY_NOTE, "Podman %s has no CDI; 4.1 and later have it", version);
		findings_close(&examination->findings, "podman", DOOR(CDI));
	}
	/* --gpus is for NVIDIA's kind alone. */
	if (engine->doors[DOOR_GPUS] && !strv_contains(&examination->cdi_kinds, "nvidia.com/gpu")) {
		findings_add(&examination->findings, "podman.no-kind", SEVERITY_NOTE, "no CDI spec has the kind nvidia.com/gpu");
		findings_advise(&examination->findings, "sudo ctr-gpu cdi generate");
		findings_close(&examination->findings, "podman", DOOR(GPUS));
	}
}

void check_podman(struct examination *examination)
{
	static const char *const packages[] = {"podman", NULL};
	static const struct dialect podman = {
		.id = "podman", .label = "Podman", .packages = packages, .hooks_dir = "engine/hooks_dir", .runtime = "engine/runtimes/nvidia",
		.default_runtime = "engine/runtime", .use_runtime = "--runtime=nvidia", .use_cdi = "--device",
	};
	_cleanup_configuration_ struct configuration configuration = {.dialect = &podman};
	_cleanup_free_ char *version = NULL;

	if (!program_is_here("podman"))
		return;
	version = package_version(packages);
	judge_podman_version(examination, add(examination, &podman, version), version);
	read_podman(&configuration);
	judge(examination, &configuration);
}

void check_crio(struct examination *examination)
{
	static const char *const packages[] = {"cri-o", NULL};
	static const struct dialect crio = {
		.id = "crio", .label = "CRI-O", .packages = packages, .hooks_dir = "crio/runtime/hooks_dir",
		.runtime = "crio/runtime/runtimes/nvidia/runtime_path", .default_runtime = "crio/runtime/default_runtime",
		.use_runtime = "runtime class nvidia", .use_cdi = "CDI",
	};
	_cleanup_configuration_ struct configuration configuration = {.dialect = &crio};
	_cleanup_free_ char *version = NULL;

	if (!program_is_here("crio"))
		return;
	version = package_version(packages);
	(void)add(examination, &crio, version);
	(void)strv_add(&configuration.hook_directories, HOOKS_USR);
	(void)strv_add(&configuration.hook_directories, HOOKS_ETC);
	read_files("/etc/crio/crio.conf", &configuration);
	read_files("/etc/crio/crio.conf.d/*", &configuration);
	judge(examination, &configuration);
}
