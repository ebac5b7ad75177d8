/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/doctor/look.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "engines/program.h"

void look_clear(struct look *look)
{
	daemon_close(&look->daemon);
	rootfs_close(&look->root);
	free(look->version);
	engine_config_clear(&look->config);
}

/* Of root, or else of whoever asks; others' count not at all. */
static int look_find_daemon(const char *name, bool (*wanted)(const struct daemon *daemon), struct look *look)
{
	if (name && daemon_find(name, 0, wanted, &look->daemon) == 0 && look->daemon.pid == 0 && geteuid() != 0)
		(void)daemon_find(name, geteuid(), wanted, &look->daemon);
	return daemon_open_root(&look->daemon, &look->root);
}

/* Docker starts a containerd for itself alone. */
static bool look_is_docker_s(const struct look *look)
{
	_cleanup_look_ struct look any = {.daemon = DAEMON_NONE, .root = ROOTFS_CLOSED};

	if (look->engine != &engine_containerd || look->daemon.pid > 0)
		return false;
	if (look_find_daemon(look->engine->daemon, NULL, &any) == 0 && any.daemon.pid > 0)
		return true;
	return engine_is_installed(&engine_docker) && !file_exists(look->engine->files[0]);
}

bool look_begin(struct examination *examination, const struct engine *engine, struct look *ret)
{
	bool installed;

	*ret = (struct look){
		.examination = examination,
		.findings = &examination->findings,
		.engine = engine,
		.daemon = DAEMON_NONE,
		.root = ROOTFS_CLOSED,
	};
	if (look_find_daemon(engine->daemon, engine->is_wanted, ret) < 0)
		return false;
	installed = ret->daemon.pid > 0 || engine_is_installed(engine);
	/* One that does not run does not say that it is the snap's. */
	ret->daemon.snap |= !installed && engine->snap && file_exists(engine->snap);
	if ((!installed && !ret->daemon.snap) || look_is_docker_s(ret))
		return false;
	ret->snap = ret->daemon.snap;
	ret->rootless = ret->daemon.pid > 0 && ret->daemon.uid != 0;
	ret->version = engine_version(engine, ret->snap);
	if (engine_config_read(engine, &ret->daemon, &ret->root, &ret->config) < 0)
		ret->findings->incomplete = true;
	ret->cdi = engine_cdi_state(engine, engine_version_number(ret->version), ret->config.cdi);
	return true;
}

void look_describe(struct look *look)
{
	const char *state = look->daemon.pid > 0 ? ", running" : look->engine == &engine_docker ? ", not running" : "";

	look->seen = findings_add_engine(look->findings, look->engine->name, look->engine->label, "%s%.24s%s%s",
					 look->version ? " " : "", look->version ? look->version : "",
					 look->snap       ? " (snap)"
					 : look->rootless ? " (rootless)"
							  : "",
					 state);
}

void look_add(struct look *look, const char *what, enum severity severity, unsigned closes, const char *format, ...)
{
	_cleanup_free_ char *id = NULL;
	va_list arguments;

	if (str_format(&id, "%s.%s", look->engine->name, what) < 0) {
		look->findings->incomplete = true;
		return;
	}
	va_start(arguments, format);
	findings_add_list(look->findings, id, severity, format, arguments);
	va_end(arguments);
	if (closes)
		findings_close(look->findings, look->engine->name, closes);
}

bool look_find_program(const struct look *look, const char *path, struct program *ret)
{
	const char *search = daemon_variable(&look->daemon, "PATH");

	return strchr(path, '/') ? program_look(&look->root, path, ret)
				 : program_find(&look->root, search ? search : PROGRAM_PATH, path, ret);
}

char *look_restart(const struct look *look, enum engine_step step)
{
	_cleanup_free_ char *command = engine_restart_command(look->engine, &look->daemon, look->rootless, step);
	char *text;

	return command && str_format(&text, "%s%s", look->rootless ? "" : "sudo ", command) == 0 ? text : NULL;
}

void look_add_cdi_door(struct look *look, const char *option)
{
	static const char preferred[] = "nvidia.com/gpu";
	const struct strv *kinds = &look->examination->cdi_kinds;

	findings_add_door(look->findings, look->seen, DOOR_CDI, "%s %s=all", option,
			  kinds->count == 0 || strv_contains(kinds, preferred) ? preferred : kinds->items[0]);
}

/* ---- what closes doors ---- */

/* Docker is asked, and goes on with what it has read. */
void look_judge_config(struct look *look)
{
	bool goes_on = look->engine == &engine_docker && look->daemon.pid > 0;

	if (!look->config.invalid)
		return;
	look_add(look, "config", goes_on ? SEVERITY_WARNING : SEVERITY_PROBLEM, goes_on ? 0 : ALL_DOORS,
		 "%s\n"
		 "Correct it: %s does not start with it.",
		 look->config.invalid, look->engine->label);
}

bool look_judge_runtime(struct look *look)
{
	const struct engine_config *config = &look->config;
	bool is_default = config->default_runtime && streq(config->default_runtime, "nvidia");
	unsigned closes = is_default ? ALL_DOORS & ~DOOR(CLI) : DOOR(RUNTIME);
	const char *where = config->path && file_exists(config->path) ? config->path : "it";
	_cleanup_program_ struct program program = {0};

	if (config->runtime && look_find_program(look, config->runtime, &program)) {
		if (!program.ours)
			look_add(look, "other-runtime", SEVERITY_NOTE, 0,
				 "its runtime nvidia is %s, which is not ctr-gpu's", program.path);
		return true;
	}
	if (config->runtime)
		look_add(look, "runtime", SEVERITY_PROBLEM, closes,
			 "the program of its runtime nvidia, %s, is not there", config->runtime);
	else if (is_default)
		look_add(look, "runtime", SEVERITY_PROBLEM, closes,
			 "its default runtime is nvidia, and %s has no such runtime", where);
	else
		look_add(look, "no-runtime", SEVERITY_NOTE, closes, "%s has no runtime nvidia", where);
	findings_advise(look->findings, "%sctr-gpu setup %s%s%s", look->rootless ? "" : "sudo ",
			config->runtime ? "--replace " : "", look->engine->name, look->rootless ? " --rootless" : "");
	return false;
}

void look_judge_cdi(struct look *look)
{
	const struct engine *engine = look->engine;
	_cleanup_free_ char *restart = NULL;

	switch (look->cdi) {
	case ENGINE_CDI_ON:
		return;
	case ENGINE_CDI_UNKNOWN:
		look_add(look, "version", SEVERITY_NOTE, DOOR(CDI),
			 "its version is not known, and CDI came with %s %d.%d", engine->label, engine->releases->major,
			 engine->releases->minor);
		return;
	case ENGINE_CDI_NONE:
		look_add(look, "no-cdi", SEVERITY_NOTE, DOOR(CDI), "%s %.24s has no CDI; %d.%d and later have it",
			 engine->label, look->version, engine->releases->major, engine->releases->minor);
		return;
	case ENGINE_CDI_OFF:
		restart = look_restart(look, ENGINE_RESTART);
		look_add(look, "cdi-off", SEVERITY_NOTE, DOOR(CDI),
			 "CDI is off in %s%s%.24s (%s in %s turns it on)\n"
			 "%sctr-gpu setup %s%s%s%s%s",
			 engine->label, look->version ? " " : "", look->version ? look->version : "", engine->cdi_on,
			 look->config.path, look->rootless ? "" : "sudo ", look->config.cdi == 0 ? "--replace " : "",
			 engine->name, look->rootless ? " --rootless" : "",
			 look->daemon.pid && restart ? ", then " : "", look->daemon.pid && restart ? restart : "");
	}
}

/* The program that `ctr run --gpus` and others start by this name. */
static void look_judge_cli(struct look *look)
{
	_cleanup_program_ struct program program = {0};

	if (!look_find_program(look, "nvidia-container-cli", &program)) {
		look_add(look, "no-cli", SEVERITY_NOTE, DOOR(CLI),
			 "there is no nvidia-container-cli\n"
			 "Install ctr-gpu-nvidia-compat, which has the name nvidia-container-cli.");
	} else if (!program.ours) {
		look_add(look, "other-toolkit", SEVERITY_NOTE, 0, "%s is another toolkit's", program.path);
	}
}

/* --gpus as a name of a CDI device, which is for NVIDIA's kind alone. */
static void look_judge_gpus(struct look *look)
{
	long since = look->engine->gpus_nvidia;

	if (since == 0 || engine_version_number(look->version) < since)
		return;
	findings_add_door(look->findings, look->seen, DOOR_GPUS, "--gpus all");
	if (strv_contains(&look->examination->cdi_kinds, "nvidia.com/gpu"))
		return;
	look_add(look, "no-kind", SEVERITY_NOTE, DOOR(GPUS),
		 "no CDI spec has the kind nvidia.com/gpu\n"
		 "sudo ctr-gpu cdi generate");
}

/* ---- which there are ---- */

/* Doors as a user types them; NULL: the engine has no such door. */
static const struct look_doors {
	const struct engine *engine;
	const char *hook, *runtime, *cdi, *cli;
} looks[] = {
	{&engine_podman, "-e NVIDIA_VISIBLE_DEVICES=all", "--runtime=nvidia", "--device", NULL},
	{&engine_containerd, NULL, "runtime class nvidia", "CDI", "ctr run --gpus 0"},
	{&engine_crio, "-e NVIDIA_VISIBLE_DEVICES=all", "runtime class nvidia", "CDI", NULL},
	{&engine_lxc, NULL, NULL, NULL, "lxc.hook.mount = /usr/share/lxc/hooks/nvidia"},
	{&engine_apptainer, NULL, NULL, NULL, "--nvccli"},
};

static void look_check(struct examination *examination, const struct look_doors *doors)
{
	_cleanup_look_ struct look look = {.daemon = DAEMON_NONE, .root = ROOTFS_CLOSED};

	if (!look_begin(examination, doors->engine, &look))
		return;
	look_describe(&look);
	look_judge_config(&look);
	look_judge_gpus(&look);
	if (doors->cli) {
		findings_add_door(look.findings, look.seen, DOOR_CLI, "%s", doors->cli);
		look_judge_cli(&look);
	}
	if (doors->hook) {
		findings_add_door(look.findings, look.seen, DOOR_HOOK, "%s", doors->hook);
		look_judge_hooks(&look);
	}
	if (doors->runtime) {
		findings_add_door(look.findings, look.seen, DOOR_RUNTIME, "%s", doors->runtime);
		(void)look_judge_runtime(&look);
	}
	if (doors->cdi) {
		look_add_cdi_door(&look, doors->cdi);
		look_judge_cdi(&look);
	}
}

void check_engines(struct examination *examination)
{
	check_docker_desktop(examination);
	check_docker(examination);
	for (size_t i = 0; i < ARRAY_SIZE(looks); i++)
		look_check(examination, &looks[i]);
	if (examination->findings.engine_count > 0)
		return;
	findings_add(&examination->findings, "engines.none", SEVERITY_PROBLEM,
		     "no container engine is installed\n"
		     "Install Docker or Podman, then: sudo ctr-gpu setup docker, or podman.");
}
