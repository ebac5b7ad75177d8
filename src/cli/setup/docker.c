/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Docker: its daemon's JSON file names the runtime, and turns CDI on where that is not the default. For --gpus the
 * daemon looks for a program of NVIDIA's name on its own PATH, once, when it starts.
 */

#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/str.h"
#include "cli/output.h"
#include "cli/setup/setup.h"
#include "system/trusted_file.h"

enum {
	RELOAD_TRIES = 50,
	RELOAD_WAIT_MS = 100,
	CONTAINERS_MAX = 200, /* that are looked at */
	NAMES_SHOWN = 5,
};

/* The programs that --gpus looks for: the hook since Docker 19.03; nvidia-cdi-hook, too, since 29.2. */
static const char *const compat_names[] = {"nvidia-container-runtime-hook", "nvidia-cdi-hook"};

/* ---- which daemon, which file ---- */

/* A directive that is both an option and in the file keeps dockerd from starting; of runtimes it takes either's. */
static int docker_check_arguments(const struct setup *setup)
{
	static const char again[] = "Remove the option from the daemon's command line, and try again.";
	const struct daemon *daemon = &setup->daemon;
	const char *runtime = NULL;

	while ((runtime = daemon_next_option(daemon, "--add-runtime", NULL, runtime)))
		if (strncmp(runtime, "nvidia=", 7) == 0)
			return output_print_advised(
				("dockerd (process %d) was started with --add-runtime %s", daemon->pid, runtime),
				("%s", again));
	if (setup->set_default && daemon_has_option(daemon, "--default-runtime"))
		return output_print_advised(
			("dockerd (process %d) was started with --default-runtime, and does not start with both that "
			 "and one in its file",
			 daemon->pid),
			("%s", again));
	return 0;
}

static int docker_look(struct setup *setup)
{
	_cleanup_free_ char *own = engine_user_file(engine_docker.user_files[0]);
	const struct daemon *daemon = &setup->daemon;
	int r;

	/* A user means their own rootless Docker, if there is one; otherwise root's. */
	if (geteuid() != 0 && !setup->config)
		setup->rootless |= daemon->pid || (own && file_exists(own));
	r = setup_refuse_user(setup);
	/* Without a daemon of their own, users see what root's daemon would need. */
	if (!r && !daemon->pid && !setup->rootless && geteuid() != 0)
		r = setup_find_daemon(setup, 0);
	if (r || setup->remove)
		return r;
	if (daemon->snap && !setup->config)
		return output_print_advised(
			("the Docker that runs here is the snap's (process %d), which cannot run programs of this host",
			 daemon->pid),
			("Install Docker from the distribution or from docker.com instead: sudo snap remove docker"));
	if (!daemon->pid && !setup->config && file_exists(engine_docker.desktop) &&
	    !engine_is_installed(&engine_docker))
		return output_print_advised(
			("Docker Desktop runs its daemon in a distribution of its own, which reads no file of this "
			 "one; it has --gpus"),
			("To use ctr-gpu, install docker.io here and turn off Docker Desktop's integration with this "
			 "distribution."));
	return docker_check_arguments(setup);
}

/* Return: a value that the running daemon reports, a new reference; NULL. */
static json_t *docker_query(const struct setup *setup, const char *page, const char *name)
{
	_cleanup_json_ json_t *answer = setup->daemon.pid ? docker_api_get(&setup->daemon, page) : NULL;

	return json_incref(json_object_get(answer, name));
}

/* ---- the file ---- */

/* Where --gpus works, for the running daemon or for one to come. */
static bool docker_has_gpus_option(const struct setup *setup)
{
	_cleanup_program_ struct program hook = {0};
	_cleanup_free_ char *path = NULL;

	if (daemon_variable(&setup->daemon, "PATH"))
		return daemon_look_up(&setup->daemon, compat_names[0], &hook);
	path = path_of_program(compat_names[0]);
	return path && access(path, F_OK) == 0;
}

/*
 * Return: the path to write, owned by the caller. It has NVIDIA's name only where --gpus works, since tools rely on
 * that. A path that leads to our program already stays.
 */
static char *docker_choose_runtime(const struct setup *setup, const char *there)
{
	_cleanup_free_ char *names = path_of_program("../" NVIDIA_NAMES),
			    *directory = names ? realpath(names, NULL) : NULL;
	_cleanup_free_ char *path = directory ? text_buffer_format("%s/" NVIDIA_NAME, directory) : NULL;
	bool promised = path && !setup->runtime_given && docker_has_gpus_option(setup) && keys_is_ours(setup, path);

	if (there && keys_is_ours(setup, there) && (!promised || strstr(there, NVIDIA_NAME)))
		return strdup(there);
	return strdup(promised ? path : setup->runtime);
}

static int docker_put_runtime(struct setup *setup)
{
	json_t *runtime = keys_runtime(setup);
	const char *there = engine_config_program(&engine_docker, runtime);
	_cleanup_free_ char *chosen = docker_choose_runtime(setup, there);

	if (chosen && there && streq(chosen, there))
		return keys_put_runtime(setup, json_incref(runtime));
	return keys_put_runtime(setup, chosen ? json_pack("{s:s}", "path", chosen) : NULL);
}

static int docker_put_cdi(struct setup *setup)
{
	_cleanup_json_ json_t *answer = docker_query(setup, "/version", "Version");
	long version = engine_version_number(json_string_value(answer));
	enum engine_cdi_state state = engine_cdi_state(&engine_docker, version, -1);
	bool by_default = state != ENGINE_CDI_OFF && state != ENGINE_CDI_UNKNOWN;

	if (by_default || json_at(setup->then, engine_docker.cdi) || !daemon_has_option(&setup->daemon, "--feature"))
		return keys_put_cdi(setup, by_default);
	setup_print(setup, "dockerd was started with --feature, and does not start with \"features\" in its file, too; "
			   "add --feature cdi=true there");
	return 0;
}

static int docker_edit(struct setup *setup)
{
	return docker_put_runtime(setup) || docker_put_cdi(setup);
}

/* dockerd keeps a default runtime that its file names no more, until it starts (moby daemon/reload.go). */
static bool docker_has_to_start(const struct setup *setup)
{
	const char *cdi = engine_docker.cdi, *chosen = engine_docker.default_runtime;

	return !keys_same(json_at(setup->now, cdi), json_at(setup->then, cdi)) ||
	       (setup->remove && !keys_same(json_at(setup->now, chosen), json_at(setup->then, chosen)));
}

static bool docker_is_ours(const json_t *runtime)
{
	return json_is_string(runtime) && streq(json_string_value(runtime), "nvidia");
}

/* Whether the daemon says that its default runtime is ours or, if @ours is false, another. */
static bool docker_has_default(const struct setup *setup, bool ours)
{
	_cleanup_json_ json_t *runtime = docker_query(setup, "/info", "DefaultRuntime");

	return runtime && docker_is_ours(runtime) == ours;
}

/* It takes a default that the file names, so it reads runc there before the file gets its final contents. */
static int docker_release(struct setup *setup)
{
	_cleanup_text_buffer_ struct text_buffer meanwhile = {0};
	_cleanup_json_ json_t *content = json_deep_copy(setup->then);

	if (!docker_is_ours(json_at(setup->now, engine_docker.default_runtime)) || !docker_has_default(setup, true))
		return 0;
	if (!content || text_buffer_copy(&meanwhile, &setup->to) < 0)
		return output_no_memory();
	if (!json_at(content, engine_docker.default_runtime) &&
	    json_object_set_new(content, engine_docker.default_runtime, json_string("runc")) < 0)
		return output_no_memory();
	if (setup_write(setup, &meanwhile, content) || config_file_write(&setup->file, &meanwhile, 0644))
		return EXIT_STATUS_FAILURE;
	daemon_signal(&setup->daemon, SIGHUP);
	for (int i = 0; i < RELOAD_TRIES && docker_has_default(setup, true); i++)
		(void)poll(NULL, 0, RELOAD_WAIT_MS);
	setup->released = docker_has_default(setup, false);
	if (setup->released)
		setup_print(setup, "the daemon uses its other runtime by default again");
	return 0;
}

/* ---- what our programs leave behind ---- */

/* Whether a container is started, and entered, by our runtime. */
static bool docker_runs_ours(const struct setup *setup, const char *id)
{
	_cleanup_free_ char *page = NULL;
	_cleanup_json_ json_t *answer = NULL;

	if (id[strspn(id, "0123456789abcdef")] || str_format(&page, "/containers/%s/json", id) < 0)
		return false;
	answer = docker_api_get(&setup->daemon, page);
	return docker_is_ours(json_at(answer, "HostConfig/Runtime"));
}

static int docker_name_containers(const struct setup *setup)
{
	_cleanup_json_ json_t *list = docker_api_get(&setup->daemon, "/containers/json?all=1");
	_cleanup_strv_ struct strv shown = {0};
	_cleanup_free_ char *names = NULL;
	const json_t *container;
	size_t i, count = 0;
	int r = 0;

	json_array_foreach (list, i, container) {
		const char *id = json_string_value(json_object_get(container, "Id"));
		const char *name = json_string_value(json_array_get(json_object_get(container, "Names"), 0));

		if (r < 0 || i >= CONTAINERS_MAX || !id || !docker_runs_ours(setup, id))
			continue;
		count++;
		if (count <= NAMES_SHOWN)
			r = strv_add(&shown, name && name[0] == '/' ? name + 1 : id);
	}
	if (r == 0 && count > NAMES_SHOWN)
		r = strv_format(&shown, "%zu more", count - NAMES_SHOWN);
	if (r == 0)
		r = strv_join(&shown, ", ", &names);
	if (r == 0 && count > 0)
		setup_print(setup,
			    "made with the runtime nvidia: %s; without ctr-gpu docker exec and docker start fail for "
			    "them: make them anew",
			    names);
	return r;
}

/* What it found when it started, it runs until it starts again. */
static void docker_name_restart(const struct setup *setup)
{
	_cleanup_free_ char *command = NULL;
	_cleanup_program_ struct program hook = {0};

	if (!daemon_variable(&setup->daemon, "PATH") || !daemon_look_up(&setup->daemon, compat_names[0], &hook) ||
	    !hook.ours || daemon_is_older_than(&setup->daemon, &hook))
		return;
	command = engine_restart_command(&engine_docker, &setup->daemon, setup->rootless, ENGINE_RESTART);
	setup_print(setup, "docker run --gpus calls ctr-gpu's hook until Docker is restarted, and fails without it: %s",
		    command ? command : "restart it");
}

static int docker_leave(const struct setup *setup)
{
	int r = docker_name_containers(setup);

	docker_name_restart(setup);
	return r < 0 ? output_no_memory() : 0;
}

/* ---- what else there is to do ---- */

/* What --gpus needs. Return: whether the daemon must be restarted to find it. */
static bool docker_advise_compat(const struct setup *setup)
{
	const struct daemon *daemon = &setup->daemon;

	if (!daemon_variable(daemon, "PATH")) {
		setup_print(setup,
			    "the PATH of dockerd (process %d) cannot be read, so whether --gpus works is not known",
			    daemon->pid);
		return false;
	}
	for (size_t i = 0; i < ARRAY_SIZE(compat_names); i++) {
		_cleanup_program_ struct program program = {0};

		if (!daemon_look_up(daemon, compat_names[i], &program))
			continue;
		if (!program.ours)
			setup_print(setup, "--gpus runs %s, which is not ctr-gpu's", program.path);
		return daemon_is_older_than(daemon, &program);
	}
	setup_print(setup, "--gpus needs %s on the daemon's PATH (%s)", compat_names[0],
		    daemon_variable(daemon, "PATH"));
	setup_print(setup, "    Install the package ctr-gpu-nvidia-compat and restart Docker. --runtime=nvidia works "
			   "without it.");
	return false;
}

static void docker_advise(const struct setup *setup)
{
	bool asks = setup->daemon.pid && !setup->remove && !setup->unreached, restarts = docker_has_to_start(setup);
	_cleanup_json_ json_t *info = asks ? docker_api_get(&setup->daemon, "/info") : NULL;
	const json_t *runtimes = json_object_get(info, "Runtimes"), *directories = json_object_get(info, "CDISpecDirs");

	if (asks)
		restarts |= docker_advise_compat(setup);
	/* A daemon that was only reloaded since its file turned CDI on, however long ago that was written. */
	restarts |= json_is_true(json_at(setup->then, engine_docker.cdi)) && json_is_array(directories) &&
		    json_array_size(directories) == 0;
	if (!setup->daemon.pid && file_exists(engine_docker.desktop))
		setup_print(setup, "Docker Desktop runs its daemon elsewhere, with GPU support of its own; nothing "
				   "here reaches it");
	else if (!setup->released && !setup->unreached)
		setup_advise_restart(setup,
				     setup->changed || restarts || (runtimes && !json_object_get(runtimes, "nvidia")),
				     restarts ? ENGINE_RESTART : ENGINE_RELOAD);
}

const struct setup_engine setup_docker = {
	.facts = &engine_docker,
	.look = docker_look,
	.edit = docker_edit,
	.release = docker_release,
	.leave = docker_leave,
	.advise = docker_advise,
};
