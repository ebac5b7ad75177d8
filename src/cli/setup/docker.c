/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Docker: its daemon's JSON file names the runtime, and turns CDI on where that is not the default. For --gpus the
 * daemon looks for a program of NVIDIA's name on its own PATH, once, when it starts.
 */

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/json.h"
#include "base/str.h"
#include "cli/output.h"
#include "cli/setup/json_file.h"
#include "cli/setup/setup.h"
#include "engines/docker_api.h"
#include "engines/engine.h"

#define RUNTIME "runtimes/nvidia"

/*
 * The runtime's program, by NVIDIA's name in a directory of our own. VS Code's Dev Containers and DevPod give a
 * container --gpus if `docker info` has the name in the path of the runtime "nvidia".
 */
#define NVIDIA_NAME "nvidia-container-runtime"
#define NVIDIA_NAMES "libexec/ctr-gpu/nvidia-names"

enum {
	RELOAD_TRIES = 50,
	RELOAD_WAIT_MS = 100,
};

/* What --gpus works by: the hook since Docker 19.03, the other before it since 29.2. */
static const char *const compat_names[] = {"nvidia-container-runtime-hook", "nvidia-cdi-hook"};

/* ---- which daemon, which file ---- */

static bool docker_has(const char *path)
{
	struct stat status;

	return path && stat(path, &status) == 0;
}

/* A normal user's Docker is rootless where there is one; else what they want is root's. */
static int docker_decide_user(struct setup *setup)
{
	_cleanup_free_ char *own = engine_user_file(engine_docker.user_files[0]);

	if (geteuid() == 0 || setup->config)
		return 0;
	if (setup->daemon.pid || docker_has(own))
		setup->rootless = true;
	if (setup->rootless || setup->dry_run)
		return 0;
	return output_complain(
		"Docker's configuration belongs to root: sudo ctr-gpu setup docker\n    For a Docker that runs as "
		"you: ctr-gpu setup "
		"docker --rootless");
}

static json_t *docker_ask(const struct setup *setup, const char *what)
{
	return setup->daemon.pid ? docker_api_get(&setup->daemon, what) : NULL;
}

static void docker_find_version(struct setup *setup)
{
	_cleanup_json_ json_t *answer = docker_ask(setup, "/version");
	const char *version = json_string_value(json_object_get(answer, "Version"));

	setup->version = version ? strdup(version) : NULL;
}

/* A directive that is both an option and in the file keeps dockerd from starting; of runtimes it takes either's. */
static int docker_check_arguments(const struct setup *setup)
{
	static const char again[] = "Remove the option from the daemon's command line, and try again.";
	const struct daemon *daemon = &setup->daemon;
	const char *runtime = daemon_option(daemon, "--add-runtime", NULL);

	if (runtime && strncmp(runtime, "nvidia=", 7) == 0)
		return output_complain("dockerd (process %d) was started with --add-runtime %s\n    %s", daemon->pid,
				       runtime, again);
	if (setup->set_default && daemon_has_option(daemon, "--default-runtime"))
		return output_complain(
			"dockerd (process %d) was started with --default-runtime, and does not start with both that "
			"and one in "
			"its file\n    %s",
			daemon->pid, again);
	return 0;
}

static int docker_check_snap(const struct setup *setup)
{
	if (!setup->daemon.snap || setup->config || setup->remove)
		return 0;
	return output_complain(
		"the Docker that runs here is the snap's (process %d), which cannot run programs of this host\n"
		"    Install Docker from the distribution or from docker.com instead: sudo snap remove docker",
		setup->daemon.pid);
}

/* Whether the daemon reads our file and can run our program. */
static bool docker_reaches_daemon(const struct setup *setup)
{
	const struct daemon *daemon = &setup->daemon;
	_cleanup_free_ char *usual =
		setup->rootless ? engine_user_file(engine_docker.user_files[0]) : strdup(engine_docker.files[0]);
	const char *option = daemon_option(daemon, engine_docker.option, engine_docker.letter), *used = option  ? option
													: usual ? usual
														: "";
	_cleanup_free_ char *ours = realpath(setup->path, NULL), *theirs = realpath(used, NULL);

	if (!streq(ours ? ours : setup->path, theirs ? theirs : used)) {
		setup_say(setup, "the dockerd that runs (process %d) does not read %s, but %s", daemon->pid,
			  setup->path, used);
		return false;
	}
	if (ours && !daemon_sees(daemon, ours)) {
		setup_say(setup, "the dockerd that runs (process %d) has files of its own, and does not see this one",
			  daemon->pid);
		return false;
	}
	if (!daemon_sees(daemon, setup->runtime)) {
		setup_say(setup, "the dockerd that runs (process %d) has files of its own, and does not see %s",
			  daemon->pid, setup->runtime);
		return false;
	}
	return true;
}

static int docker_check_desktop(const struct setup *setup)
{
	if (!docker_has(engine_docker.desktop) || setup->daemon.pid || setup->config || setup->remove ||
	    engine_is_installed(&engine_docker))
		return 0;
	return output_complain(
		"Docker Desktop runs its daemon in a distribution of its own, which reads no file of this one; it "
		"has --gpus\n"
		"    To use ctr-gpu, install docker.io here and turn off Docker Desktop's integration with this "
		"distribution.");
}

static int docker_look(struct setup *setup)
{
	int r;

	r = setup_find_daemon(setup, geteuid(), NULL);
	if (!r)
		r = docker_decide_user(setup);
	/* A user may look at what root's would need. */
	if (!r && !setup->daemon.pid && !setup->rootless && geteuid() != 0)
		r = setup_find_daemon(setup, 0, NULL);
	if (!r)
		r = docker_check_snap(setup);
	if (!r)
		r = docker_check_desktop(setup);
	if (!r && !setup->remove)
		r = docker_check_arguments(setup);
	if (!r)
		r = setup_find_path(setup, engine_docker.files[0], engine_docker.user_files[0]);
	if (r)
		return r;
	/* Before anything is written. */
	setup->unreached = setup->daemon.pid && !setup->remove && !docker_reaches_daemon(setup);
	docker_find_version(setup);
	return 0;
}

/* ---- the file ---- */

static int docker_put(const struct setup *setup, struct text *text, const char *path, json_t *value)
{
	int r = value ? json_file_put(text, path, value) : -ENOMEM;

	if (r == -ENOTDIR)
		return output_complain(
			"%s: \"%.*s\" is not an object, and Docker would refuse it too\n    Mend that, and try again.",
			setup->path, (int)strcspn(path, "/"), path);
	return r < 0 ? output_no_memory() : 0;
}

/* By whatever name and links; a bare one is what the daemon finds by it, which may be another toolkit's. */
static bool docker_is_our_runtime(const struct setup *setup, const char *path)
{
	_cleanup_free_ char *found = strchr(path, '/') ? strdup(path) : daemon_look_up(&setup->daemon, path, NULL);
	_cleanup_free_ char *ours = realpath(setup->runtime, NULL), *theirs = found ? realpath(found, NULL) : NULL;

	return ours && theirs && streq(ours, theirs);
}

/* Where --gpus works, for the running daemon or for one to come. */
static bool docker_has_gpus_option(const struct setup *setup)
{
	bool runs = daemon_variable(&setup->daemon, "PATH");
	_cleanup_free_ char *hook =
		runs ? daemon_look_up(&setup->daemon, compat_names[0], NULL) : setup_find_program(compat_names[0]);

	return docker_has(hook);
}

/*
 * The path to write, owned by the caller: by NVIDIA's name only where --gpus works, which is what that name promises.
 */
static char *docker_choose_runtime(const struct setup *setup)
{
	_cleanup_free_ char *names = setup_find_program("../" NVIDIA_NAMES),
			    *directory = names ? realpath(names, NULL) : NULL;
	_cleanup_free_ char *path = directory ? text_format("%s/" NVIDIA_NAME, directory) : NULL;
	bool promised =
		path && !setup->runtime_given && docker_has_gpus_option(setup) && docker_is_our_runtime(setup, path);

	return strdup(promised ? path : setup->runtime);
}

/* As setup writes it, wherever that was. */
static bool docker_is_our_path(const char *path)
{
	const char *name = strrchr(path, '/');

	return strstr(path, NVIDIA_NAMES "/") || (name && streq(name, "/ctr-gpu-runtime"));
}

static int docker_put_runtime(const struct setup *setup, struct text *text)
{
	_cleanup_free_ char *chosen = docker_choose_runtime(setup);
	_cleanup_json_ json_t *there = NULL;
	const char *path;

	if (!chosen || json_file_find(text, RUNTIME, &there) == -ENOMEM)
		return output_no_memory();
	path = json_string_value(json_object_get(there, "path"));
	if (path && docker_is_our_runtime(setup, path) && (strstr(path, NVIDIA_NAME) || !strstr(chosen, NVIDIA_NAME)))
		return 0;
	if (there && !json_is_null(there) && !setup->replace && !(path && docker_is_our_path(path)))
		return output_complain("%s has a runtime \"nvidia\" already: %s\n"
				       "    To take it over, with its old value back after --remove, add --replace.",
				       setup->path, path ? path : "one without a path");
	return docker_put(setup, text, RUNTIME, json_pack("{s:s}", "path", chosen));
}

static int docker_put_cdi(const struct setup *setup, struct text *text)
{
	enum engine_cdi_state state = engine_cdi_state(&engine_docker, engine_version_number(setup->version), -1);
	_cleanup_json_ json_t *there = NULL;

	if (json_file_find(text, engine_docker.cdi, &there) == -ENOMEM)
		return output_no_memory();
	if (json_is_false(there) && !setup->replace) {
		setup_say(setup,
			  "%s turns CDI off (features.cdi); --device nvidia.com/gpu=… needs it, "
			  "and --replace turns it on",
			  setup->path);
		return 0;
	}
	if (json_is_true(there) || (!there && state != ENGINE_CDI_OFF && state != ENGINE_CDI_UNKNOWN))
		return 0;
	if (daemon_has_option(&setup->daemon, "--feature")) {
		setup_say(setup,
			  "dockerd was started with --feature, and does not start with \"features\" in its file, too; "
			  "add --feature cdi=true there");
		return 0;
	}
	return docker_put(setup, text, engine_docker.cdi, json_true());
}

static bool docker_is_default(const struct text *text)
{
	_cleanup_json_ json_t *name = NULL;

	return json_file_find(text, engine_docker.default_runtime, &name) == 0 && json_is_string(name) &&
	       streq(json_string_value(name), "nvidia");
}

static int docker_edit(const struct setup *setup, struct text *text)
{
	int r;

	r = docker_put_runtime(setup, text);
	if (!r)
		r = docker_put_cdi(setup, text);
	if (!r && setup->set_default && !docker_is_default(text))
		r = docker_put(setup, text, engine_docker.default_runtime, json_string("nvidia"));
	return r;
}

static int docker_forget(struct text *text)
{
	_cleanup_json_ json_t *there = NULL;
	const char *path;
	int r;

	r = json_file_find(text, RUNTIME, &there);
	path = json_string_value(json_object_get(there, "path"));
	if (there && !(path && docker_is_our_path(path)))
		return 0;
	if (r == 0)
		r = json_file_put(text, RUNTIME, NULL);
	if (r < 0 && r != -ENOENT)
		return r;
	/* dockerd does not start with the name of a runtime that there is not. */
	return docker_is_default(text) ? json_file_put(text, engine_docker.default_runtime, NULL) : 0;
}

/* dockerd keeps a default runtime that its file names no more, until it starts (moby daemon/reload.go). */
static bool docker_restarts_for(const char *path, bool remove)
{
	return streq(path, engine_docker.cdi) || (remove && streq(path, engine_docker.default_runtime));
}

/* Whether the daemon says that our runtime is its default one. */
static bool docker_runs_by_ours(const struct setup *setup)
{
	_cleanup_json_ json_t *info = docker_ask(setup, "/info");
	const char *now = json_string_value(json_object_get(info, "DefaultRuntime"));

	return now && streq(now, "nvidia");
}

/* It does take a default that the file has, so it gets to read runc there before the file becomes what it is to be. */
static int docker_release(struct setup *setup, struct config_file *file, const struct text *to)
{
	_cleanup_text_ struct text meanwhile = {0};
	_cleanup_free_ char *path = strdup(file->path);
	_cleanup_json_ json_t *now = NULL;
	int r;

	if (!docker_is_default(&file->text) || !docker_runs_by_ours(setup))
		return 0;
	if (!path || text_set(&meanwhile, to->data, to->size) < 0)
		return output_no_memory();
	if (json_file_find(to, engine_docker.default_runtime, &now) < 0)
		r = docker_put(setup, &meanwhile, engine_docker.default_runtime, json_string("runc"));
	else
		r = 0;
	if (!r)
		r = config_file_write(file, &meanwhile, 0644);
	if (r)
		return r;
	(void)kill(setup->daemon.pid, SIGHUP);
	for (int i = 0; i < RELOAD_TRIES && docker_runs_by_ours(setup); i++)
		(void)poll(NULL, 0, RELOAD_WAIT_MS);
	setup->released = !docker_runs_by_ours(setup);
	if (setup->released)
		setup_say(setup,
			  "the daemon that runs uses its other runtime by default again; containers made before have "
			  "to be made anew");
	config_file_close(file);
	return config_file_read(path, file);
}

/* ---- what else there is to do ---- */

static bool docker_is_our_hook(const char *path)
{
	_cleanup_free_ char *target = realpath(path, NULL);
	const char *name = target ? strrchr(target, '/') : NULL;

	return name && streq(name, "/ctr-gpu-hook");
}

/* What --gpus needs. Return: whether the daemon must be restarted to find it. */
static bool docker_advise_compat(const struct setup *setup)
{
	const struct daemon *daemon = &setup->daemon;

	if (!daemon_variable(daemon, "PATH")) {
		setup_say(setup,
			  "the PATH of dockerd (process %d) cannot be read, so whether --gpus works is not known",
			  daemon->pid);
		return false;
	}
	for (size_t i = 0; i < ARRAY_SIZE(compat_names); i++) {
		struct timespec since = {0};
		_cleanup_free_ char *path = daemon_look_up(daemon, compat_names[i], &since);

		if (!path)
			continue;
		if (!daemon->elsewhere && !docker_is_our_hook(path))
			setup_say(setup, "--gpus runs %s, which is not ctr-gpu's", path);
		return daemon_is_older(daemon, &since);
	}
	setup_say(setup, "--gpus needs %s on the daemon's PATH (%s)", compat_names[0], daemon_variable(daemon, "PATH"));
	setup_say(
		setup,
		"    Install the package ctr-gpu-nvidia-compat and restart Docker. --runtime=nvidia works without it.");
	return false;
}

static bool docker_knows_runtime(const struct setup *setup)
{
	_cleanup_json_ json_t *answer = docker_ask(setup, "/info");
	const json_t *runtimes = json_object_get(answer, "Runtimes");

	return !runtimes || json_object_get(runtimes, "nvidia");
}

static void docker_advise(struct setup *setup, bool changed)
{
	if (setup->daemon.pid && !setup->remove && !setup->unreached)
		setup->needs_restart |= docker_advise_compat(setup);
	if (!setup->daemon.pid && docker_has(engine_docker.desktop))
		setup_say(setup,
			  "Docker Desktop runs its daemon elsewhere, with GPU support of its own; nothing here reaches "
			  "it");
	else if (!setup->released && !setup->unreached)
		setup_advise_restart(setup, changed || setup->needs_restart ||
						    (!setup->remove && !docker_knows_runtime(setup)));
}

const struct setup_engine setup_docker = {
	.facts = &engine_docker,
	.format = &setup_json,
	.runtime = RUNTIME,
	.look = docker_look,
	.edit = docker_edit,
	.forget = docker_forget,
	.release = docker_release,
	.restarts_for = docker_restarts_for,
	.advise = docker_advise,
};
