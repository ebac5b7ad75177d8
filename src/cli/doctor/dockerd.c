/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Docker: --gpus, --runtime and --device. The daemon looks for a hook by name on its own PATH, once, when it starts
 * (moby daemon/devices_nvidia_linux.go), so its environment and its start matter, and not ours.
 */

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/json.h"
#include "cli/doctor/doctor.h"
#include "engines/daemon.h"
#include "engines/engine.h"
#include "system/trusted_file.h"

#define HOOK "nvidia-container-runtime-hook"

struct docker {
	struct engine_check look;
	int reach;    /* of the socket: 0; -errno */
	json_t *info; /* what the daemon says of itself; NULL: it could not be asked */
	struct program hook, cdi_hook;
};

static void dockerd_clear(struct docker *docker)
{
	engine_check_clear(&docker->look);
	json_decref(docker->info);
	path_lookup_clear(&docker->hook);
	path_lookup_clear(&docker->cdi_hook);
}

/* ---- what there is ---- */

static const json_t *dockerd_runtime(const struct docker *docker, const char *name)
{
	return json_object_get(json_object_get(docker->info, "Runtimes"), name);
}

/*
 * The daemon's answer counts before its file. To ask would start a daemon that systemd starts on demand, so only one
 * that runs already is asked.
 */
static void dockerd_ask(struct docker *docker)
{
	struct engine_check *check = &docker->look;
	_cleanup_json_ json_t *version = NULL;
	const json_t *directories;
	const char *text;

	if (check->daemon.pid == 0)
		return;
	docker->reach = docker_api_check_access(&check->daemon);
	version = docker->reach == 0 ? docker_api_get(&check->daemon, "/version") : NULL;
	text = json_string_value(json_object_get(version, "Version"));
	if (!text)
		return;
	(void)str_replace(&check->version, text);
	check->cdi = engine_cdi_state(check->engine, engine_version_number(check->version), check->config.cdi);
	docker->info = docker_api_get(&check->daemon, "/info");
	if (!docker->info)
		return;
	directories = json_object_get(docker->info, "CDISpecDirs");
	if (json_array_size(directories) > 0) {
		check->cdi = ENGINE_CDI_ON;
		(void)engine_config_copy_list(directories, &check->config.cdi_directories);
	} else if (json_is_array(directories) && check->cdi == ENGINE_CDI_ON)
		check->cdi = ENGINE_CDI_OFF;
	text = json_string_value(json_object_get(dockerd_runtime(docker, "nvidia"), "path"));
	if (!check->config.runtime && text)
		check->config.runtime = strdup(text);
	free(check->config.default_runtime);
	text = json_string_value(json_object_get(docker->info, "DefaultRuntime"));
	check->config.default_runtime = text ? strdup(text) : NULL;
}

/* If it fails to answer for another reason, it listens elsewhere, for example on TCP. */
static void dockerd_check_socket(struct docker *docker)
{
	const char *name = getenv("USER");
	struct engine_check *check = &docker->look;

	if (check->daemon.pid == 0 || docker->info)
		return;
	if (docker->reach == -EACCES || docker->reach == -EPERM)
		engine_check_add(
			check, "permission", SEVERITY_PROBLEM, ALL_METHODS,
			"you may not use its socket\n"
			"sudo usermod --append --groups docker %s, and log in again (the members of that group can "
			"become root); or use sudo docker.",
			name && *name ? name : "$USER");
	else if (docker->reach == 0 || docker->reach == -EAGAIN || docker->reach == -ECONNREFUSED)
		engine_check_add(check, "no-answer", SEVERITY_PROBLEM, ALL_METHODS,
				 "the daemon (process %d) does not answer\n"
				 "%s",
				 check->daemon.pid, engine_check_restart(check, ENGINE_RESTART));
}

/* ---- --gpus ---- */

/* By CDI, where there is the other name, too; AMD's GPUs without any. */
static bool dockerd_has_gpus_by_cdi(const struct docker *docker)
{
	const struct engine_check *check = &docker->look;
	const struct strv *kinds = engine_check_kinds(check);
	long version = engine_version_number(check->version);

	if (check->cdi != ENGINE_CDI_ON)
		return false;
	return (docker->cdi_hook.path && version >= check->engine->gpus_nvidia &&
		strv_contains(kinds, "nvidia.com/gpu")) ||
	       (!docker->hook.path && version >= check->engine->gpus_amd && strv_contains(kinds, "amd.com/gpu"));
}

/* Whether there is a hook that we can see and the daemon cannot. */
static bool dockerd_check_path(struct engine_check *check)
{
	_cleanup_program_ struct program program = {0};
	_cleanup_rootfs_ struct rootfs root = ROOTFS_CLOSED;

	if (rootfs_open(AT_FDCWD, "/", &root) < 0 || !path_lookup_find(&root, PATH_LOOKUP_PATH, HOOK, &program))
		return false;
	if (!daemon_sees(&check->daemon, program.path) || check->daemon.snap)
		engine_check_add(
			check, "snap", SEVERITY_PROBLEM, METHOD(GPUS),
			"the daemon has a filesystem of its own (snap?) and does not see %s\n"
			"Use the distribution's docker.io or Docker's own packages; or CDI: docker run --device "
			"KIND=all",
			program.path);
	else
		engine_check_add(check, "path", SEVERITY_PROBLEM, METHOD(GPUS),
				 "the daemon's PATH does not lead to %s\n"
				 "Start dockerd with /usr/bin in its PATH, and restart it.",
				 program.path);
	return true;
}

static void dockerd_check_gpus(struct docker *docker)
{
	const struct program *hook = docker->hook.path ? &docker->hook : &docker->cdi_hook;
	struct engine_check *check = &docker->look;
	bool has = docker->hook.path || dockerd_has_gpus_by_cdi(docker);

	if (!has && !dockerd_check_path(check))
		engine_check_add(
			check, "no-hook", SEVERITY_NOTE, METHOD(GPUS),
			HOOK
			" is missing from the daemon's PATH\n"
			"Install ctr-gpu-nvidia-compat (or: sudo make install-compat) and restart Docker; without it, "
			"for --runtime=nvidia: sudo ctr-gpu setup docker");
	else if (has && daemon_is_older_than(&docker->look.daemon, hook))
		engine_check_add(check, "restart", SEVERITY_PROBLEM, METHOD(GPUS),
				 "the daemon looked for its hook before %s was there\n"
				 "%s",
				 hook->path, engine_check_restart(check, ENGINE_RESTART));
	else if (docker->hook.path && !docker->hook.ours)
		engine_check_add(
			check, "other-toolkit", SEVERITY_NOTE, 0,
			"--gpus goes to %s, which is not ctr-gpu's\n"
			"To have ctr-gpu do it: install ctr-gpu-nvidia-compat in the place of NVIDIA's toolkit.",
			docker->hook.path);
}

/* ---- --runtime ---- */

/* As its file has it now. */
static bool dockerd_knows_runtime(const struct docker *docker)
{
	const json_t *runtime = dockerd_runtime(docker, "nvidia");
	const char *path = json_string_value(json_object_get(runtime, "path")), *wanted = docker->look.config.runtime;

	return runtime && (!path || !wanted || streq(path, wanted));
}

static void dockerd_check_runtime(struct docker *docker)
{
	struct engine_check *check = &docker->look;
	_cleanup_program_ struct program program = {0};

	engine_check_method_runtime(check);
	if (docker->info && !dockerd_knows_runtime(docker) && check->config.runtime &&
	    engine_check_find_program(check, check->config.runtime, &program))
		engine_check_add(check, "reload", SEVERITY_PROBLEM, METHOD(RUNTIME),
				 "the running daemon does not know yet that %s has it\n"
				 "%s",
				 check->config.path, engine_check_restart(check, ENGINE_RELOAD));
}

/* No container starts, by whichever method, if the program of the default runtime is gone. */
static void dockerd_check_default(struct docker *docker)
{
	struct engine_check *check = &docker->look;
	const char *name = check->config.default_runtime, *path;
	_cleanup_program_ struct program program = {0};
	const json_t *runtime;

	/* Names of shims, "io.containerd.kata.v2", and Docker's own, which "" means as well, are not in the file. */
	if (!name || !*name || streq(name, "runc") || strpbrk(name, "./"))
		return;
	runtime = json_object_get(check->config.runtimes, name);
	if (!runtime)
		runtime = dockerd_runtime(docker, name);
	path = json_string_value(json_object_get(runtime, "path"));
	if (path ? engine_check_find_program(check, path, &program) : json_object_get(runtime, "runtimeType") != NULL)
		return;
	engine_check_add(
		check, "default-runtime", SEVERITY_PROBLEM, ALL_METHODS,
		"its default runtime is %s, and %s is missing: no container starts\n"
		"Correct \"default-runtime\" in %s, and restart Docker; what ctr-gpu wrote goes with: sudo ctr-gpu "
		"setup --remove all",
		name, path ? path : "that runtime", check->config.path);
}

/* ---- all of it ---- */

void check_docker(struct doctor_context *examination)
{
	__attribute__((cleanup(dockerd_clear))) struct docker docker = {.look = ENGINE_CHECK_NONE};
	struct engine_check *check = &docker.look;

	if (!engine_check_begin(examination, &engine_docker, check))
		return;
	dockerd_ask(&docker);
	engine_check_describe(check);
	(void)engine_check_find_program(check, HOOK, &docker.hook);
	(void)engine_check_find_program(check, "nvidia-cdi-hook", &docker.cdi_hook);
	engine_check_add_method(check, METHOD_GPUS);
	engine_check_add_method(check, METHOD_RUNTIME);
	engine_check_add_method(check, METHOD_CDI);
	engine_check_method_config(check);
	dockerd_check_socket(&docker);
	dockerd_check_default(&docker);
	dockerd_check_gpus(&docker);
	dockerd_check_runtime(&docker);
	engine_check_method_cdi(check);
	engine_check_running(check);
}

/* Docker Desktop brings its client and socket into a distribution; its daemon and toolkit are in another. */
void check_docker_desktop(struct doctor_context *examination)
{
	struct findings *findings = &examination->findings;
	struct host_engine *desktop;

	if (!file_exists(engine_docker.desktop))
		return;
	desktop = findings_add_engine(findings, "docker-desktop", "Docker Desktop");
	(void)snprintf(desktop->methods[METHOD_GPUS], sizeof(desktop->methods[METHOD_GPUS]), "%s",
		       engine_docker.uses[METHOD_GPUS]);
	findings_add(findings, "docker-desktop.own", SEVERITY_NOTE,
		     "Docker Desktop runs in a distribution of its own: --gpus there is its own, and nothing here "
		     "reaches it\n"
		     "To use ctr-gpu, install docker.io in this distribution and turn off its WSL integration here.");
}
