/* SPDX-License-Identifier: Apache-2.0 */

/* What `ctr-gpu doctor` finds out about one engine: how a container gets a GPU there, and what is in the way. */

#include "cli/doctor/doctor.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/json.h"
#include "base/paths.h"
#include "cdi/cdi.h"
#include "engines/daemon.h"
#include "system/trusted_file.h"

/* With look->sudo, an option, the engine's name and look->user. */
#define SETUP "%sctr-gpu setup %s%s%s"

enum { ACCEPTS_CONNECTIONS = 1 << 16 };

void engine_check_clear(struct engine_check *check)
{
	daemon_close(&check->daemon);
	rootfs_close(&check->root);
	free(check->version);
	free(check->command);
	engine_config_clear(&check->config);
	strv_clear(&check->kinds);
}

/* Root's daemon, or else the caller's own. Those of other users do not count. */
static int engine_check_find_daemon(const struct daemon_kind *kind, struct engine_check *check)
{
	if (kind->name && daemon_find(kind, 0, &check->daemon) == 0 && check->daemon.pid == 0 && geteuid() != 0)
		(void)daemon_find(kind, geteuid(), &check->daemon);
	return daemon_open_root(&check->daemon, &check->root);
}

/* Docker starts a containerd for itself alone. */
static bool engine_check_is_docker_s(const struct engine_check *check)
{
	_cleanup_engine_check_ struct engine_check any = ENGINE_CHECK_NONE;
	struct daemon_kind kind = check->engine->daemon;

	/* Docker's listens elsewhere, which its own file says. */
	kind.is_wanted = NULL;
	kind.socket = NULL;
	if (check->engine != &engine_containerd || check->daemon.pid > 0)
		return false;
	if (engine_check_find_daemon(&kind, &any) == 0 && any.daemon.pid > 0)
		return true;
	return engine_is_installed(&engine_docker) && !file_exists(check->engine->files[0]);
}

bool engine_check_begin(struct doctor_context *examination, const struct engine *engine, struct engine_check *ret)
{
	bool installed, rootless;
	int cdi;

	ret->examination = examination;
	ret->findings = &examination->findings;
	ret->engine = engine;
	if (engine_check_find_daemon(&engine->daemon, ret) < 0)
		return false;
	installed = ret->daemon.pid > 0 || engine_is_installed(engine);
	/* A daemon that does not run does not show whether it is the snap's; the program does. */
	ret->daemon.snap |= !installed && engine->snap && file_exists(engine->snap);
	if ((!installed && !ret->daemon.snap) || engine_check_is_docker_s(ret))
		return false;
	rootless = ret->daemon.pid > 0 && ret->daemon.uid != 0;
	ret->sudo = rootless ? "" : "sudo ";
	ret->user = rootless ? " --rootless" : "";
	ret->version = engine_version(engine, ret->daemon.snap);
	if (engine_config_read(engine, &ret->daemon, &ret->root, &ret->config) < 0)
		ret->findings->incomplete = true;
	cdi = ret->config.cdi;
	ret->lost = engine_config_query(engine, &ret->daemon, &ret->config, &cdi);
	ret->cdi = engine_cdi_state(engine, engine_version_number(ret->version), cdi);
	return true;
}

/*
 * Whether a service manager listens at the daemon's socket; the first connection starts the daemon. Lines of
 * /proc/net/unix:
 * "number: references protocol flags type state inode path", with __SO_ACCEPTCON among the flags.
 */
static bool engine_check_is_awaited(const char *path)
{
	_cleanup_fclose_ FILE *file = file_exists(path) ? fopen("/proc/net/unix", "re") : NULL;
	_cleanup_free_ char *line = NULL;
	size_t size = 0;
	bool found = false;

	while (file && !found && getline(&line, &size, file) > 0) {
		unsigned flags = 0;
		int name = 0;

		line[strcspn(line, "\n")] = '\0';
		if (sscanf(line, "%*s %*s %*s %x %*s %*s %*s %n", &flags, &name) != 1 || name == 0)
			continue;
		found = (flags & ACCEPTS_CONNECTIONS) &&
			(streq(line + name, path) ||
			 (str_has_prefix(line + name, "/var/run/") && streq(line + name + strlen("/var"), path)));
	}
	return found;
}

/* The engine's own directories, if it was given some; a link is the usual way from /var/run to /run. */
static void engine_check_find_kinds(struct engine_check *check)
{
	static const char *const usual[] = {PATH_CDI, PATH_CDI_RUN};
	const struct strv *places = &check->config.cdi_directories;
	size_t found = 0;

	for (size_t i = 0; i < ARRAY_SIZE(usual); i++)
		found += strv_contains(places, usual[i]) || (i == 1 && strv_contains(places, "/run/cdi"));
	check->reads_elsewhere = places->count > 0 && (found < ARRAY_SIZE(usual) || places->count > found);
	if (!check->reads_elsewhere)
		return;
	check->seen->apart = METHOD(CDI);
	(void)cdi_list_kinds(check->examination, places, &check->kinds);
}

void engine_check_describe(struct engine_check *check)
{
	const char *state = !check->engine->daemon.name                             ? ""
			    : check->daemon.pid > 0                                 ? ", running"
			    : engine_check_is_awaited(check->engine->daemon.socket) ? ", starts on demand"
										    : ", not running";

	check->seen = findings_add_engine(check->findings, check->engine->name, check->engine->label);
	check->seen->idle = streq(state, ", not running");
	(void)snprintf(check->seen->state, sizeof(check->seen->state), "%s%.24s%s%s", check->version ? " " : "",
		       check->version ? check->version : "",
		       check->daemon.snap ? " (snap)"
		       : *check->user     ? " (rootless)"
					  : "",
		       state);
	engine_check_find_kinds(check);
}

void engine_check_add(struct engine_check *check, const char *what, enum severity severity, unsigned closes,
		      const char *format, ...)
{
	const char *name = check->engine->name;
	char id[48];
	va_list arguments;

	(void)snprintf(id, sizeof(id), "%s%s%s", strchr(what, '.') ? "" : name, strchr(what, '.') ? "" : ".", what);
	va_start(arguments, format);
	findings_add_list(check->findings, id, severity, format, arguments);
	va_end(arguments);
	if (closes)
		findings_close(check->findings, name, closes);
}

bool engine_check_find_program(const struct engine_check *check, const char *path, struct program *ret)
{
	const char *search = daemon_variable(&check->daemon, "PATH");

	return strchr(path, '/') ? path_lookup_look(&check->root, path, ret)
				 : path_lookup_find(&check->root, search ? search : PATH_LOOKUP_PATH, path, ret);
}

const char *engine_check_restart(struct engine_check *check, enum engine_step step)
{
	_cleanup_free_ char *command = engine_restart_command(check->engine, &check->daemon, *check->user, step);

	free(check->command);
	if (!command || str_format(&check->command, "%s%s", check->sudo, command) < 0)
		check->command = NULL;
	return check->command ? check->command : "Restart the engine.";
}

const struct strv *engine_check_kinds(const struct engine_check *check)
{
	return check->reads_elsewhere ? &check->kinds : &check->examination->cdi_kinds;
}

/* That specs have, or would have: of the kinds of this host's GPUs the first. */
static void engine_check_choose_kind(const struct engine_check *check, char ret[64])
{
	const struct strv *there = engine_check_kinds(check);
	_cleanup_strv_ struct strv kinds = {0};

	if (check->examination->host)
		(void)cdi_kinds(check->examination->host, &kinds);
	(void)snprintf(ret, 64, "%s", there->count > 0 ? there->items[0] : "nvidia.com/gpu");
	for (size_t i = kinds.count; i-- > 0;)
		if (strstr(kinds.items[i], "/gpu") && (there->count == 0 || strv_contains(there, kinds.items[i])))
			(void)snprintf(ret, 64, "%s", kinds.items[i]);
}

void engine_check_add_method(struct engine_check *check, enum method method)
{
	char *use = check->seen->methods[method], kind[64];

	(void)snprintf(use, sizeof(check->seen->methods[method]), "%s", check->engine->uses[method]);
	if (method != METHOD_CDI)
		return;
	engine_check_choose_kind(check, kind);
	(void)snprintf(use, sizeof(check->seen->methods[method]), "%s %s=all", check->engine->uses[method], kind);
}

/* ---- findings that close methods ---- */

/* How long "/etc/docker/daemon.json:3:1" is in front of the reason. */
static int engine_check_place(const char *invalid)
{
	const char *reason = strstr(invalid, ": ");

	return reason ? (int)(reason - invalid) : (int)strlen(invalid);
}

/* An invalid file is only a warning for a running Docker: it keeps the settings that it has read. */
void engine_check_method_config(struct engine_check *check)
{
	bool goes_on = check->engine == &engine_docker && check->daemon.pid > 0;

	if (check->config.unread)
		engine_check_add(check, "config-unread", SEVERITY_WARNING, 0,
				 "%s: what it says of GPUs is not known\n"
				 "%s",
				 check->config.unread,
				 geteuid() ? "sudo ctr-gpu doctor" : "Mend that file, and run ctr-gpu doctor again.");
	if (check->config.invalid)
		engine_check_add(check, "config", goes_on ? SEVERITY_WARNING : SEVERITY_PROBLEM,
				 goes_on ? 0 : ALL_METHODS,
				 "%s\n"
				 "Correct %.*s: %s does not start with it.",
				 check->config.invalid, engine_check_place(check->config.invalid),
				 check->config.invalid, check->engine->label);
}

/* Docker's package of containerd comes with that plugin turned off. */
static void engine_check_method_cri(struct engine_check *check)
{
	engine_check_add(check, "cri-off", SEVERITY_PROBLEM, METHOD(RUNTIME) | METHOD(CDI),
			 "%s turns the CRI plugin off (disabled_plugins), and runtimes and CDI are that plugin's\n"
			 "Remove the CRI plugin from disabled_plugins%s%s",
			 check->config.path, check->daemon.pid ? ", then " : ".",
			 check->daemon.pid ? engine_check_restart(check, ENGINE_RESTART) : "");
}

/* The runtime "nvidia" is in the file, but the engine does not have it. */
static void engine_check_method_lost(struct engine_check *check)
{
	const char *path = check->config.path ? check->config.path : "its file";
	_cleanup_free_ char *hiding = NULL;

	if (check->engine->ask) {
		engine_check_add(
			check, "reload", SEVERITY_PROBLEM, METHOD(RUNTIME),
			"its configuration has the runtime nvidia, and the running daemon does not know it yet\n"
			"%s",
			engine_check_restart(check, ENGINE_RESTART));
		return;
	}
	if (check->config.path && check->config.json)
		hiding = engine_config_find_import(check->engine, check->config.path, check->config.json);
	if (!hiding && json_integer_value(json_object_get(check->config.json, "version")) < 2 &&
	    engine_version_number(check->version) >= ENGINE_VERSION(2, 0)) {
		engine_check_add(check, "old-file", SEVERITY_PROBLEM, METHOD(RUNTIME) | METHOD(CDI),
				 "%s is of version 1, from which containerd 2 takes no runtimes\n"
				 "\"containerd config migrate\" prints a newer one.",
				 path);
		return;
	}
	engine_check_add(check, "hidden", SEVERITY_PROBLEM, METHOD(RUNTIME) | METHOD(CDI),
			 "%s has the runtime nvidia, and %s itself does not: %s%shides it\n"
			 "Move what %s says of that plugin to %s%s%s",
			 path, check->engine->label, hiding ? hiding : "another file",
			 hiding ? ", which it imports, " : " ", hiding ? hiding : "the other file", path,
			 check->daemon.pid ? ", then " : ".",
			 check->daemon.pid ? engine_check_restart(check, ENGINE_RESTART) : "");
}

void engine_check_method_runtime(struct engine_check *check)
{
	const struct engine_config *config = &check->config;
	bool is_default = config->default_runtime && streq(config->default_runtime, "nvidia");
	unsigned closes = is_default ? ALL_METHODS & ~METHOD(CLI) : METHOD(RUNTIME);
	const char *where = config->path && file_exists(config->path) ? config->path : "it";
	_cleanup_program_ struct program program = {0};

	if ((check->lost || config->runtime) && config->path && engine_config_has_no_cri(config->json)) {
		engine_check_method_cri(check);
	} else if (check->lost) {
		engine_check_method_lost(check);
	} else if (config->runtime && engine_check_find_program(check, config->runtime, &program)) {
		if (!program.ours)
			engine_check_add(check, "other-runtime", SEVERITY_NOTE, 0,
					 "its runtime nvidia is %s, which is not ctr-gpu's", program.path);
	} else if (config->runtime) {
		engine_check_add(check, "runtime", SEVERITY_PROBLEM, closes,
				 "the program of its runtime nvidia, %s, is not there\n" SETUP, config->runtime,
				 check->sudo, "--replace ", check->engine->name, check->user);
	} else if (is_default) {
		engine_check_add(check, "runtime", SEVERITY_PROBLEM, closes,
				 "its default runtime is nvidia, and %s has no such runtime\n" SETUP, where,
				 check->sudo, "", check->engine->name, check->user);
	} else {
		engine_check_add(check, "no-runtime", SEVERITY_NOTE, closes, "%s has no runtime nvidia\n" SETUP, where,
				 check->sudo, "", check->engine->name, check->user);
	}
}

static void engine_check_method_directories(struct engine_check *check)
{
	const struct strv *places = &check->config.cdi_directories;
	_cleanup_free_ char *names = NULL;

	if (strv_join(places, ", ", &names) == 0)
		/* Specs in other directories were written to be read: a warning. */
		engine_check_add(check, "cdi-directories",
				 check->examination->cdi_kinds.count > 0 ? SEVERITY_WARNING : SEVERITY_NOTE,
				 METHOD(CDI),
				 "it reads CDI specs in %s alone, and none of a GPU that it can use is there\n"
				 "sudo ctr-gpu cdi generate --output=%s/",
				 names, places->items[places->count - 1]);
}

/* A file that the engine's own imports, and that turns CDI off where that would be on; NULL. */
static char *engine_check_find_import(const struct engine_check *check)
{
	const struct engine_config *config = &check->config;
	long version = engine_version_number(check->version);

	if (check->cdi != ENGINE_CDI_OFF || !config->path || !config->json ||
	    engine_cdi_state(check->engine, version, config->cdi) != ENGINE_CDI_ON)
		return NULL;
	return engine_config_find_import(check->engine, config->path, config->json);
}

void engine_check_method_cdi(struct engine_check *check)
{
	const struct engine *engine = check->engine;
	_cleanup_free_ char *import = engine_check_find_import(check);

	if (check->cdi == ENGINE_CDI_UNKNOWN)
		engine_check_add(check, "version", SEVERITY_NOTE, METHOD(CDI),
				 "its version is not known, and CDI came with %s %d.%d", engine->label,
				 engine->releases->major, engine->releases->minor);
	else if (check->cdi == ENGINE_CDI_NONE)
		engine_check_add(check, "no-cdi", SEVERITY_NOTE, METHOD(CDI),
				 "%s %.24s has no CDI; %d.%d and later have it", engine->label, check->version,
				 engine->releases->major, engine->releases->minor);
	else if (import)
		engine_check_add(check, "cdi-off", SEVERITY_NOTE, METHOD(CDI),
				 "CDI is off in %s, because of %s, which %s imports\n"
				 "Write %s in %s%s%s",
				 engine->label, import, check->config.path, engine->cdi_on, import,
				 check->daemon.pid ? ", then " : ".",
				 check->daemon.pid ? engine_check_restart(check, ENGINE_RESTART) : "");
	else if (check->cdi == ENGINE_CDI_OFF)
		engine_check_add(check, "cdi-off", SEVERITY_NOTE, METHOD(CDI),
				 "CDI is off in %s%s%.24s (%s in %s turns it on)\n" SETUP "%s%s", engine->label,
				 check->version ? " " : "", check->version ? check->version : "", engine->cdi_on,
				 check->config.path, check->sudo, check->config.cdi == 0 ? "--replace " : "",
				 engine->name, check->user, check->daemon.pid ? ", then " : "",
				 check->daemon.pid ? engine_check_restart(check, ENGINE_RESTART) : "");
	else if (check->reads_elsewhere && check->kinds.count == 0)
		engine_check_method_directories(check);
}

void engine_check_age(struct engine_check *check)
{
	unsigned closes = (check->config.runtime ? METHOD(RUNTIME) : 0) | (check->config.cdi == 1 ? METHOD(CDI) : 0);
	_cleanup_free_ char *file = NULL;

	if (!check->engine->dump || !closes)
		return;
	file = engine_config_newer_file(check->engine, &check->daemon);
	if (file)
		engine_check_add(check, "restart", SEVERITY_PROBLEM, closes,
				 "%s was changed after the daemon was started, which reads it only then\n"
				 "%s",
				 file, engine_check_restart(check, ENGINE_RESTART));
}

void engine_check_running(struct engine_check *check)
{
	if (check->seen->idle)
		engine_check_add(check, "not-running", SEVERITY_NOTE, ALL_METHODS, "it does not run\n%s",
				 engine_check_restart(check, ENGINE_START));
}

/* ---- hooks ---- */

/*
 * Checks the JSON files by which Podman and CRI-O find hooks (oci-hooks(5)), those of other packages, too. If an engine
 * cannot read a file, no container starts. If a hook's program cannot be executed, the containers that the hook is for
 * do not start. If the program is missing, the engines silently skip the hook (containers/common pkg/hooks; seen with
 * Podman 4.3, 5.4 and 5.8).
 */

enum { HOOK_FILE_MAX = 64 * 1024, HOOK_FILES_MAX = 4096 };

/* Active hooks that act on NVIDIA_VISIBLE_DEVICES: other toolkits' files, and whether one runs our program. */
struct hooks {
	struct engine_check *look;
	struct strv theirs;
	bool ours;
};

/* Schema 1.0.0 has an object, 0.1.0 a path. */
static const char *hooks_program(const json_t *json)
{
	const json_t *hook = json_object_get(json, "hook");

	return json_is_string(hook) ? json_string_value(hook) : json_string_value(json_object_get(hook, "path"));
}

/* Whether the hook is for every container, or selects containers by their command. */
static bool hooks_is_for_many(const json_t *json)
{
	const json_t *when = json_object_get(json, "when");

	return json_is_true(json_object_get(when, "always")) || json_object_get(when, "commands") ||
	       json_object_get(json, "cmds");
}

/* Whether the program is one of those that act on NVIDIA_VISIBLE_DEVICES. */
static bool hooks_is_for_gpus(const char *path)
{
	const char *name = strrchr(path, '/');

	return name && (str_has_prefix(name, "/nvidia-container-") || str_has_prefix(name, "/ctr-gpu"));
}

/* As a program, or as a script whose interpreter, "#!/bin/sh", can be executed. */
static bool hooks_can_execute(const struct rootfs *root, const char *file, struct program *ret)
{
	_cleanup_close_ int handle = -1, fd = -1;
	_cleanup_program_ struct program program = {0};
	char line[256] = "", *start;

	if (!path_lookup_look(root, file, ret))
		return false;
	handle = rootfs_open_path(root, file, O_PATH);
	if (handle >= 0)
		fd = rootfs_open_regular(root, handle);
	if (fd < 0 || read(fd, line, sizeof(line) - 1) < 3 || line[0] != '#' || line[1] != '!')
		return true;
	start = line + 2 + strspn(line + 2, " \t");
	start[strcspn(start, " \t\r\n")] = '\0';
	return path_lookup_look(root, start, &program);
}

static void hooks_check(struct hooks *hooks, const json_t *json, const char *path, const char *file)
{
	_cleanup_program_ struct program program = {0};
	_cleanup_rootfs_ struct rootfs root = ROOTFS_CLOSED;
	bool many = hooks_is_for_many(json);

	if (rootfs_open(AT_FDCWD, "/", &root) < 0)
		return;
	if (access(file, F_OK) < 0 && errno == ENOENT)
		engine_check_add(hooks->look, "hooks.no-program", SEVERITY_WARNING, 0,
				 "%s runs %s, which is not there: the file counts for nothing\n"
				 "Install what %s belongs to again, or remove that file.",
				 path, file, path);
	else if (!hooks_can_execute(&root, file, &program))
		engine_check_add(
			hooks->look, "hooks.broken", many ? SEVERITY_PROBLEM : SEVERITY_WARNING, many ? ALL_METHODS : 0,
			"%s runs %s, which cannot be executed: %s\n"
			"Install what it belongs to again, or remove the file.",
			path, file, many ? "no container starts" : "the containers that it is for do not start");
	else if (hooks_is_for_gpus(file) && program.ours)
		hooks->ours = true;
	else if (hooks_is_for_gpus(file))
		(void)strv_add(&hooks->theirs, path);
}

static void hooks_look(struct hooks *hooks, const char *directory, const char *name)
{
	_cleanup_free_ char *path = NULL, *data = NULL;
	_cleanup_json_ json_t *json = NULL;
	const char *file;
	size_t size;

	if (str_format(&path, "%s/%s", directory, name) < 0 ||
	    fd_read_untrusted_at(AT_FDCWD, path, HOOK_FILE_MAX, &data, &size) < 0)
		return;
	file = json_parse(data, size, &json, NULL) == 0 ? hooks_program(json) : NULL;
	if (file && *file)
		hooks_check(hooks, json, path, file);
	else
		engine_check_add(hooks->look, "hooks.unreadable", SEVERITY_PROBLEM, ALL_METHODS,
				 "%s %s: no container starts\n"
				 "Correct or remove %s.",
				 path, json ? "names no program" : "is not JSON", path);
}

static bool hooks_is_file(const char *name)
{
	const char *end = strrchr(name, '.');

	return name[0] != '.' && end && streq(end, ".json");
}

/* A file of the same name in a later directory counts instead. */
static bool hooks_is_replaced(const struct strv *directories, size_t number, const char *name)
{
	for (size_t i = number + 1; i < directories->count; i++) {
		_cleanup_free_ char *path = NULL;

		if (str_format(&path, "%s/%s", directories->items[i], name) == 0 && file_exists(path))
			return true;
	}
	return false;
}

/* A directory that has our file, but that the engine does not read; NULL. */
static const char *hooks_find_unread(const struct strv *directories)
{
	for (const char *const *place = engine_hook_directories; *place; place++) {
		_cleanup_free_ char *path = NULL;

		if (!strv_contains(directories, *place) && str_format(&path, "%s/" ENGINE_HOOK_FILE, *place) == 0 &&
		    file_exists(path))
			return *place;
	}
	return NULL;
}

static void hooks_break_method(struct engine_check *check)
{
	const struct strv *directories = &check->config.hook_directories;
	const char *unread = hooks_find_unread(directories);
	_cleanup_free_ char *names = NULL;

	(void)strv_join(directories, " and ", &names);
	if (unread)
		engine_check_add(check, "hooks.unread", SEVERITY_PROBLEM, METHOD(HOOK),
				 "the hook is registered in %s, and only %s is read\n"
				 "Copy %s/" ENGINE_HOOK_FILE " to " ENGINE_HOOKS_USR ", or name that directory in "
				 "hooks_dir.",
				 unread, names && *names ? names : "no directory", unread);
	else
		engine_check_add(check, "hooks.none", SEVERITY_NOTE, METHOD(HOOK),
				 ENGINE_HOOK_FILE
				 " is not in %s\n"
				 "Install ctr-gpu completely: make install, or its package; or sudo ctr-gpu setup %s",
				 names && *names ? names : "a hooks directory", check->engine->name);
}

void engine_check_method_hooks(struct engine_check *check)
{
	const struct strv *directories = &check->config.hook_directories;
	struct hooks hooks = {.look = check};

	for (size_t i = 0; i < directories->count; i++) {
		_cleanup_strv_ struct strv names = {0};

		(void)fd_list_names(AT_FDCWD, directories->items[i], hooks_is_file, HOOK_FILES_MAX, &names);
		for (size_t j = 0; j < names.count; j++)
			if (!hooks_is_replaced(directories, i, names.items[j]))
				hooks_look(&hooks, directories->items[i], names.items[j]);
	}
	if (hooks.ours && hooks.theirs.count > 0)
		engine_check_add(check, "hooks.duplicate", SEVERITY_WARNING, 0,
				 "%s and ctr-gpu's hook are both active: each container gets the GPUs twice\n"
				 "Remove oci-nvidia-hook.json from the hooks directory, with NVIDIA's toolkit.",
				 hooks.theirs.items[0]);
	else if (hooks.theirs.count > 0)
		engine_check_add(check, "hooks.other-toolkit", SEVERITY_NOTE, 0, "%s is another toolkit's hook",
				 hooks.theirs.items[0]);
	else if (!hooks.ours)
		hooks_break_method(check);
	strv_clear(&hooks.theirs);
}
