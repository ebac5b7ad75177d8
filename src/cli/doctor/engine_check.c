/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/doctor/doctor.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/paths.h"
#include "cdi/cdi.h"
#include "system/trusted_file.h"

/* With look->sudo, an option, the engine's name and look->user. */
#define SETUP "%sctr-gpu setup %s%s%s"

enum { ACCEPTS_CONNECTIONS = 1 << 16 };

void engine_check_clear(struct engine_check *look)
{
	daemon_close(&look->daemon);
	rootfs_close(&look->root);
	free(look->version);
	free(look->command);
	engine_config_clear(&look->config);
	strv_clear(&look->kinds);
}

/* Root's daemon, or else the caller's own. Those of other users do not count. */
static int engine_check_find_daemon(const struct daemon_kind *kind, struct engine_check *look)
{
	if (kind->name && daemon_find(kind, 0, &look->daemon) == 0 && look->daemon.pid == 0 && geteuid() != 0)
		(void)daemon_find(kind, geteuid(), &look->daemon);
	return daemon_open_root(&look->daemon, &look->root);
}

/* Docker starts a containerd for itself alone. */
static bool engine_check_is_docker_s(const struct engine_check *look)
{
	_cleanup_engine_check_ struct engine_check any = ENGINE_CHECK_NONE;
	struct daemon_kind kind = look->engine->daemon;

	/* Docker's listens elsewhere, which its own file says. */
	kind.is_wanted = NULL;
	kind.socket = NULL;
	if (look->engine != &engine_containerd || look->daemon.pid > 0)
		return false;
	if (engine_check_find_daemon(&kind, &any) == 0 && any.daemon.pid > 0)
		return true;
	return engine_is_installed(&engine_docker) && !file_exists(look->engine->files[0]);
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
	ret->lost = engine_config_ask(engine, &ret->daemon, &ret->config, &cdi);
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

void engine_check_describe(struct engine_check *look)
{
	const char *state = !look->engine->daemon.name                             ? ""
			    : look->daemon.pid > 0                                 ? ", running"
			    : engine_check_is_awaited(look->engine->daemon.socket) ? ", starts on demand"
										   : ", not running";

	look->idle = streq(state, ", not running");

	look->seen = findings_add_engine(look->findings, look->engine->name, look->engine->label);
	(void)snprintf(look->seen->state, sizeof(look->seen->state), "%s%.24s%s%s", look->version ? " " : "",
		       look->version ? look->version : "",
		       look->daemon.snap ? " (snap)"
		       : *look->user     ? " (rootless)"
					 : "",
		       state);
}

void engine_check_add(struct engine_check *look, const char *what, enum severity severity, unsigned closes,
		      const char *format, ...)
{
	const char *name = look->engine->name;
	char id[48];
	va_list arguments;

	(void)snprintf(id, sizeof(id), "%s%s%s", strchr(what, '.') ? "" : name, strchr(what, '.') ? "" : ".", what);
	va_start(arguments, format);
	findings_add_list(look->findings, id, severity, format, arguments);
	va_end(arguments);
	if (closes)
		findings_close(look->findings, name, closes);
}

bool engine_check_find_program(const struct engine_check *look, const char *path, struct program *ret)
{
	const char *search = daemon_variable(&look->daemon, "PATH");

	return strchr(path, '/') ? path_lookup_look(&look->root, path, ret)
				 : path_lookup_find(&look->root, search ? search : PATH_LOOKUP_PATH, path, ret);
}

const char *engine_check_restart(struct engine_check *look, enum engine_step step)
{
	_cleanup_free_ char *command = engine_restart_command(look->engine, &look->daemon, *look->user, step);

	free(look->command);
	if (!command || str_format(&look->command, "%s%s", look->sudo, command) < 0)
		look->command = NULL;
	return look->command ? look->command : "Restart it.";
}

/* That specs have, or would have: of the kinds of this host's GPUs the first. */
static void engine_check_choose_kind(const struct engine_check *look, char ret[64])
{
	const struct strv *there = look->reads_elsewhere ? &look->kinds : &look->examination->cdi_kinds;
	_cleanup_strv_ struct strv kinds = {0};

	if (look->examination->host)
		(void)cdi_kinds(look->examination->host, &kinds);
	(void)snprintf(ret, 64, "%s", there->count > 0 ? there->items[0] : "nvidia.com/gpu");
	for (size_t i = kinds.count; i-- > 0;)
		if (strstr(kinds.items[i], "/gpu") && (there->count == 0 || strv_contains(there, kinds.items[i])))
			(void)snprintf(ret, 64, "%s", kinds.items[i]);
}

/* The engine's own directories, if it was given some; a link is the usual way from /var/run to /run. */
static void engine_check_find_kinds(struct engine_check *look)
{
	static const char *const usual[] = {PATH_CDI, PATH_CDI_RUN};
	const struct strv *places = &look->config.cdi_directories;
	size_t found = 0;

	for (size_t i = 0; i < ARRAY_SIZE(usual); i++)
		found += strv_contains(places, usual[i]) || (i == 1 && strv_contains(places, "/run/cdi"));
	look->reads_elsewhere = places->count > 0 && (found < ARRAY_SIZE(usual) || places->count > found);
	if (!look->reads_elsewhere)
		return;
	look->seen->apart = METHOD(CDI);
	(void)cdi_list_kinds(look->examination, places, &look->kinds);
}

void engine_check_add_method(struct engine_check *look, enum method method)
{
	char *use = look->seen->methods[method], kind[64];

	(void)snprintf(use, sizeof(look->seen->methods[method]), "%s", look->engine->uses[method]);
	if (method != METHOD_CDI)
		return;
	engine_check_find_kinds(look);
	engine_check_choose_kind(look, kind);
	(void)snprintf(use, sizeof(look->seen->methods[method]), "%s %s=all", look->engine->uses[method], kind);
}

/* ---- findings that close methods ---- */

/* An invalid file is only a warning for a running Docker: it keeps the settings that it has read. */
void engine_check_method_config(struct engine_check *look)
{
	bool goes_on = look->engine == &engine_docker && look->daemon.pid > 0;

	if (look->config.unread)
		engine_check_add(look, "config-unread", SEVERITY_WARNING, 0,
				 "%s: what it says of GPUs is not known\n"
				 "%s",
				 look->config.unread, geteuid() ? "sudo ctr-gpu doctor" : "Mend it, and look again.");
	if (look->config.invalid)
		engine_check_add(look, "config", goes_on ? SEVERITY_WARNING : SEVERITY_PROBLEM,
				 goes_on ? 0 : ALL_METHODS,
				 "%s\n"
				 "Correct it: %s does not start with it.",
				 look->config.invalid, look->engine->label);
}

/* The runtime "nvidia" is in the file, but the engine does not have it. */
static void engine_check_method_lost(struct engine_check *look)
{
	const char *path = look->config.path ? look->config.path : "its file";
	_cleanup_free_ char *hiding = NULL;

	if (look->engine->ask) {
		engine_check_add(
			look, "reload", SEVERITY_PROBLEM, METHOD(RUNTIME),
			"its configuration has the runtime nvidia, and the running daemon does not know it yet\n"
			"%s",
			engine_check_restart(look, ENGINE_RESTART));
		return;
	}
	if (look->config.path && look->config.json)
		hiding = engine_config_find_import(look->engine, look->config.path, look->config.json);
	engine_check_add(look, "hidden", SEVERITY_PROBLEM, METHOD(RUNTIME) | METHOD(CDI),
			 "%s has the runtime nvidia, and %s itself does not: %s%shides it\n"
			 "Move what %s says of that plugin to %s%s%s",
			 path, look->engine->label, hiding ? hiding : "another file",
			 hiding ? ", which it imports, " : " ", hiding ? hiding : "the other file", path,
			 look->daemon.pid ? ", then " : ".",
			 look->daemon.pid ? engine_check_restart(look, ENGINE_RESTART) : "");
}

void engine_check_method_runtime(struct engine_check *look)
{
	const struct engine_config *config = &look->config;
	bool is_default = config->default_runtime && streq(config->default_runtime, "nvidia");
	unsigned closes = is_default ? ALL_METHODS & ~METHOD(CLI) : METHOD(RUNTIME);
	const char *where = config->path && file_exists(config->path) ? config->path : "it";
	_cleanup_program_ struct program program = {0};

	if (look->lost) {
		engine_check_method_lost(look);
	} else if (config->runtime && engine_check_find_program(look, config->runtime, &program)) {
		if (!program.ours)
			engine_check_add(look, "other-runtime", SEVERITY_NOTE, 0,
					 "its runtime nvidia is %s, which is not ctr-gpu's", program.path);
	} else if (config->runtime) {
		engine_check_add(look, "runtime", SEVERITY_PROBLEM, closes,
				 "the program of its runtime nvidia, %s, is not there\n" SETUP, config->runtime,
				 look->sudo, "--replace ", look->engine->name, look->user);
	} else if (is_default) {
		engine_check_add(look, "runtime", SEVERITY_PROBLEM, closes,
				 "its default runtime is nvidia, and %s has no such runtime\n" SETUP, where, look->sudo,
				 "", look->engine->name, look->user);
	} else {
		engine_check_add(look, "no-runtime", SEVERITY_NOTE, closes, "%s has no runtime nvidia\n" SETUP, where,
				 look->sudo, "", look->engine->name, look->user);
	}
}

static void engine_check_method_directories(struct engine_check *look)
{
	const struct strv *places = &look->config.cdi_directories;
	_cleanup_free_ char *names = NULL;

	if (strv_join(places, ", ", &names) == 0)
		/* Specs in other directories were written to be read: a warning. */
		engine_check_add(look, "cdi-directories",
				 look->examination->cdi_kinds.count > 0 ? SEVERITY_WARNING : SEVERITY_NOTE, METHOD(CDI),
				 "it reads CDI specs in %s alone, and none of a GPU that it can use is there\n"
				 "sudo ctr-gpu cdi generate --output=%s/",
				 names, places->items[places->count - 1]);
}

void engine_check_method_cdi(struct engine_check *look)
{
	const struct engine *engine = look->engine;

	if (look->cdi == ENGINE_CDI_UNKNOWN)
		engine_check_add(look, "version", SEVERITY_NOTE, METHOD(CDI),
				 "its version is not known, and CDI came with %s %d.%d", engine->label,
				 engine->releases->major, engine->releases->minor);
	else if (look->cdi == ENGINE_CDI_NONE)
		engine_check_add(look, "no-cdi", SEVERITY_NOTE, METHOD(CDI),
				 "%s %.24s has no CDI; %d.%d and later have it", engine->label, look->version,
				 engine->releases->major, engine->releases->minor);
	else if (look->cdi == ENGINE_CDI_OFF)
		engine_check_add(look, "cdi-off", SEVERITY_NOTE, METHOD(CDI),
				 "CDI is off in %s%s%.24s (%s in %s turns it on)\n" SETUP "%s%s", engine->label,
				 look->version ? " " : "", look->version ? look->version : "", engine->cdi_on,
				 look->config.path, look->sudo, look->config.cdi == 0 ? "--replace " : "", engine->name,
				 look->user, look->daemon.pid ? ", then " : "",
				 look->daemon.pid ? engine_check_restart(look, ENGINE_RESTART) : "");
	else if (look->reads_elsewhere && look->kinds.count == 0)
		engine_check_method_directories(look);
}

void engine_check_age(struct engine_check *look)
{
	unsigned closes = (look->config.runtime ? METHOD(RUNTIME) : 0) | (look->config.cdi == 1 ? METHOD(CDI) : 0);
	_cleanup_free_ char *file = NULL;

	if (!look->engine->dump || !closes)
		return;
	file = engine_config_newer_file(look->engine, &look->daemon);
	if (file)
		engine_check_add(look, "restart", SEVERITY_PROBLEM, closes,
				 "%s was changed after the daemon was started, which reads it only then\n"
				 "%s",
				 file, engine_check_restart(look, ENGINE_RESTART));
}

void engine_check_running(struct engine_check *look)
{
	if (look->idle)
		engine_check_add(look, "not-running", SEVERITY_NOTE, ALL_METHODS, "it does not run\n%s",
				 engine_check_restart(look, ENGINE_START));
}
