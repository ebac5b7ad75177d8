/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Docker: --gpus, --runtime and --device. The daemon looks for a hook by name on its own PATH, once, when it starts (moby
 * daemon/devices_nvidia_linux.go), so its environment and its start matter, and not ours.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.h"
#include "cli/doctor/doctor.h"
#include "cli/doctor/file.h"
#include "engines/docker_api.h"
#include "engines/engine.h"
#include "engines/package.h"
#include "engines/program.h"

enum { CONFIG_MAX = 256 * 1024 };

#define HOOK "nvidia-container-runtime-hook"

struct docker {
	struct findings *findings;
	struct daemon daemon;
	struct rootfs root;  /* its files; ours where they are not to be seen */
	char *version;       /* NULL: not known */
	bool snap, rootless;
	int reach;           /* of the socket: 0; -errno */
	char *config_path;
	json_t *config;      /* daemon.json; NULL: none */
	json_t *info;        /* what the daemon says of itself; NULL: it could not be asked */
	struct program hook, cdi_hook;
};

static void docker_clear(struct docker *docker)
{
	daemon_close(&docker->daemon);
	rootfs_close(&docker->root);
	free(docker->version);
	free(docker->config_path);
	json_decref(docker->config);
	json_decref(docker->info);
	program_clear(&docker->hook);
	program_clear(&docker->cdi_hook);
}

static void close_door(const struct docker *docker, unsigned doors)
{
	findings_close(docker->findings, "docker", doors);
}

/* ---- what there is ---- */

static const char *search_path(const struct docker *docker)
{
	const char *path = daemon_variable(&docker->daemon, "PATH");

	return path ? path : PROGRAM_PATH;
}

static const char *restart_command(const struct docker *docker)
{
	return docker->snap ? "sudo snap restart docker" : docker->rootless ? "systemctl --user restart docker"
									     : "sudo systemctl restart docker (without systemd: sudo service docker restart)";
}

static void find_config(struct docker *docker)
{
	const char *path = daemon_option(&docker->daemon, "--config-file", NULL), *home = daemon_variable(&docker->daemon, "HOME");
	int r;

	if (!path && docker->rootless && home)
		r = str_format(&docker->config_path, "%s/.config/docker/daemon.json", home);
	else
		r = str_format(&docker->config_path, "%s", path ? path : docker->snap ? "/var/snap/docker/current/config/daemon.json" : "/etc/docker/daemon.json");
	docker->findings->incomplete |= r < 0;
}

/* In the daemon's own root directory: a snap's is another than ours. dockerd takes an empty file for none. */
static void read_config(struct docker *docker)
{
	char reason[JSON_ERROR_TEXT_LENGTH] = "", *quote;
	_cleanup_free_ char *data = NULL;
	size_t size;

	find_config(docker);
	if (!docker->config_path || rootfs_read_file(&docker->root, docker->config_path, CONFIG_MAX, &data, &size) < 0 || strspn(data, " \t\r\n") == size)
		return;
	if (json_parse(data, size, &docker->config, reason) == 0 && json_is_object(docker->config))
		return;
	/* "… near 'TOKEN'" quotes the file, in which there may be secrets. */
	if ((quote = strstr(reason, " near ")))
		*quote = '\0';
	findings_add(docker->findings, "docker.config", docker->daemon.pid > 0 ? SEVERITY_WARNING : SEVERITY_PROBLEM, "%s is not valid: %s",
		     docker->config_path, reason[0] ? reason : "it is not an object");
	findings_advise(docker->findings, "Correct it: Docker does not start with it.");
	if (docker->daemon.pid == 0)
		close_door(docker, ALL_DOORS);
}

/* Asking starts a daemon that a service manager would start on demand, so only one that runs already is asked. */
static void ask(struct docker *docker)
{
	_cleanup_json_ json_t *version = NULL;
	const char *text;

	if (docker->daemon.pid == 0)
		return;
	docker->reach = docker_api_reach(&docker->daemon);
	version = docker->reach == 0 ? docker_api_get(&docker->daemon, "/version") : NULL;
	text = json_string_value(json_object_get(version, "Version"));
	if (!text)
		return;
	docker->version = strdup(text);
	docker->info = docker_api_get(&docker->daemon, "/info");
}

static void judge_socket(struct docker *docker)
{
	const char *name = getenv("USER");

	if (docker->daemon.pid == 0 || docker->info)
		return;
	if (docker->reach == -EACCES || docker->reach == -EPERM) {
		findings_add(docker->findings, "docker.permission", SEVERITY_PROBLEM, "you may not use its socket");
		findings_advise(docker->findings, "sudo usermod --append --groups docker %s, and log in again (whoever is in that group can become root); or use sudo docker.",
				name && *name ? name : "$USER");
	} else if (docker->reach != 0 && docker->reach != -EAGAIN && docker->reach != -ECONNREFUSED) {
		/* It listens where we do not look, as on TCP. */
		return;
	} else {
		findings_add(docker->findings, "docker.no-answer", SEVERITY_PROBLEM, "the daemon (process %d) does not answer", docker->daemon.pid);
		findings_advise(docker->findings, "%s", restart_command(docker));
	}
	close_door(docker, ALL_DOORS);
}

static void read_snap_version(struct docker *docker)
{
	_cleanup_free_ char *text = docker->snap ? file_text("/snap/docker/current/meta/snap.yaml") : NULL;
	const char *line = text ? strstr(text, "\nversion: ") : NULL;

	if (!line)
		return;
	line += strlen("\nversion: ");
	line += strspn(line, "'\"v");
	docker->version = strndup(line, strspn(line, "0123456789."));
}

static bool find(struct docker *docker)
{
	static const char *const packages[] = {"docker-ce", "docker.io", "moby-engine", "docker", "docker-engine", NULL};

	if (engine_find_daemon("dockerd", NULL, &docker->daemon, &docker->root) < 0)
		return false;
	docker->snap = docker->daemon.snap;
	if (docker->daemon.pid == 0 && !program_is_here("dockerd")) {
		docker->snap = file_exists("/snap/docker/current");
		if (!docker->snap)
			return false;
	}
	docker->rootless = docker->daemon.pid > 0 && docker->daemon.uid != 0;
	ask(docker);
	if (!docker->version && docker->snap)
		read_snap_version(docker);
	else if (!docker->version)
		docker->version = package_version(packages);
	(void)program_find(&docker->root, search_path(docker), HOOK, &docker->hook);
	(void)program_find(&docker->root, search_path(docker), "nvidia-cdi-hook", &docker->cdi_hook);
	return true;
}

/* ---- --device ---- */

/* By version 28.2 CDI is on unless turned off, from 25 on it is off unless turned on. */
static bool has_cdi(const struct docker *docker)
{
	const json_t *feature = json_object_get(json_object_get(docker->config, "features"), "cdi");
	const json_t *directories = json_object_get(docker->info, "CDISpecDirs");
	long version = engine_version_number(docker->version);

	if (json_is_array(directories))
		return json_array_size(directories) > 0;
	if (version < ENGINE_VERSION(25, 0))
		return false;
	return json_is_boolean(feature) ? json_is_true(feature) : version >= ENGINE_VERSION(28, 2);
}

static void judge_cdi(const struct docker *docker)
{
	long version = engine_version_number(docker->version);

	if (has_cdi(docker))
		return;
	if (version == 0) {
		findings_add(docker->findings, "docker.version", SEVERITY_NOTE, "its version is not known, and CDI came with Docker 25");
	} else if (version < ENGINE_VERSION(25, 0)) {
		findings_add(docker->findings, "docker.no-cdi", SEVERITY_NOTE, "Docker %.24s has no CDI; 25.0 and later have it", docker->version);
	} else {
		findings_add(docker->findings, "docker.cdi-off", SEVERITY_NOTE, "CDI is off in Docker %.24s (\"features\": {\"cdi\": true} in %s turns it on)",
			     docker->version, docker->config_path);
		findings_advise(docker->findings, "sudo ctr-gpu setup%s docker, then %s",
				json_is_false(json_object_get(json_object_get(docker->config, "features"), "cdi")) ? " --replace" : "", restart_command(docker));
	}
	close_door(docker, DOOR(CDI));
}

/* ---- --gpus ---- */

static bool has_kind(const struct examination *examination, const char *kind)
{
	return strv_contains(&examination->cdi_kinds, kind);
}

/* Since 29.2 by CDI, where there is the other name, too; AMD's GPUs since 29.3. */
static bool has_gpus_by_cdi(const struct examination *examination, const struct docker *docker)
{
	long version = engine_version_number(docker->version);

	if (!has_cdi(docker))
		return false;
	return (docker->cdi_hook.path && version >= ENGINE_VERSION(29, 2) && has_kind(examination, "nvidia.com/gpu")) ||
	       (!docker->hook.path && version >= ENGINE_VERSION(29, 3) && has_kind(examination, "amd.com/gpu"));
}

/* When a name came to be. An upgrade of our package makes its links anew, but not the directory that is the package's alone. */
static struct timespec find_birth(const struct program *program)
{
	struct timespec birth = program->st.st_ctim;
	struct statx directory;

	if (program->ours && statx(AT_FDCWD, "/usr/share/doc/ctr-gpu-nvidia-compat", 0, STATX_BTIME, &directory) == 0 &&
	    (directory.stx_mask & STATX_BTIME) && directory.stx_btime.tv_sec < birth.tv_sec)
		birth = (struct timespec){.tv_sec = directory.stx_btime.tv_sec, .tv_nsec = directory.stx_btime.tv_nsec};
	return birth;
}

static bool is_late(const struct docker *docker, const struct program *program)
{
	struct timespec birth = find_birth(program);

	return program->path && daemon_is_older(&docker->daemon, &birth);
}

/* A hook that we can see and the daemon cannot. */
static bool judge_path(const struct docker *docker)
{
	_cleanup_program_ struct program program = {0};
	_cleanup_rootfs_ struct rootfs root = ROOTFS_CLOSED;

	if (rootfs_open(AT_FDCWD, "/", &root) < 0 || !program_find(&root, PROGRAM_PATH, HOOK, &program))
		return false;
	if (!daemon_sees(&docker->daemon, program.path) || docker->snap) {
		findings_add(docker->findings, "docker.snap", SEVERITY_PROBLEM, "the daemon has a filesystem of its own (snap?) and does not see %s", program.path);
		findings_advise(docker->findings, "Use the distribution's docker.io or Docker's own packages; or CDI: docker run --device KIND=all");
	} else {
		findings_add(docker->findings, "docker.path", SEVERITY_PROBLEM, "the daemon's PATH does not lead to %s", program.path);
		findings_advise(docker->findings, "Start dockerd with /usr/bin in its PATH, and restart it.");
	}
	close_door(docker, DOOR(GPUS));
	return true;
}

static void judge_gpus(const struct examination *examination, const struct docker *docker)
{
	const struct program *hook = docker->hook.path ? &docker->hook : &docker->cdi_hook;

	if (!docker->hook.path && !has_gpus_by_cdi(examination, docker)) {
		if (judge_path(docker))
			return;
		findings_add(docker->findings, "docker.no-hook", SEVERITY_NOTE, "there is no " HOOK " on the daemon's PATH");
		findings_advise(docker->findings, "Install ctr-gpu-nvidia-compat (or: sudo make install-compat) and restart Docker; without it, for --runtime=nvidia: sudo ctr-gpu setup docker");
		close_door(docker, DOOR(GPUS));
	} else if (is_late(docker, hook)) {
		findings_add(docker->findings, "docker.restart", SEVERITY_PROBLEM, "the daemon looked for its hook before %s was there", hook->path);
		findings_advise(docker->findings, "%s", restart_command(docker));
		close_door(docker, DOOR(GPUS));
	} else if (docker->hook.path && !docker->hook.ours) {
		findings_add(docker->findings, "docker.other-toolkit", SEVERITY_NOTE, "--gpus goes to %s, which is not ctr-gpu's", docker->hook.path);
		findings_advise(docker->findings, "To have ctr-gpu do it: install ctr-gpu-nvidia-compat in the place of NVIDIA's toolkit.");
	}
}

/* ---- --runtime ---- */

static const json_t *runtime_of(const struct docker *docker, const char *name)
{
	const json_t *runtime = json_object_get(json_object_get(docker->config, "runtimes"), name);

	return runtime ? runtime : json_object_get(json_object_get(docker->info, "Runtimes"), name);
}

static bool find_program(const struct docker *docker, const char *path, struct program *ret)
{
	return strchr(path, '/') ? program_look(&docker->root, path, ret) : program_find(&docker->root, search_path(docker), path, ret);
}

static void judge_runtime(const struct docker *docker)
{
	const char *path = json_string_value(json_object_get(runtime_of(docker, "nvidia"), "path"));
	_cleanup_program_ struct program program = {0};

	if (!path) {
		findings_add(docker->findings, "docker.no-runtime", SEVERITY_NOTE, "it has no runtime nvidia");
		findings_advise(docker->findings, "%s", docker->rootless ? "ctr-gpu setup docker --rootless" : "sudo ctr-gpu setup docker");
	} else if (!find_program(docker, path, &program)) {
		findings_add(docker->findings, "docker.runtime", SEVERITY_PROBLEM, "the program of its runtime nvidia, %s, is not there", path);
		findings_advise(docker->findings, "sudo ctr-gpu setup --replace docker; or correct \"runtimes\" in %s, and restart the daemon.", docker->config_path);
	} else if (docker->info && !json_object_get(json_object_get(docker->info, "Runtimes"), "nvidia")) {
		findings_add(docker->findings, "docker.reload", SEVERITY_PROBLEM, "the running daemon does not know yet that %s has it", docker->config_path);
		findings_advise(docker->findings, "sudo systemctl reload docker (without systemd: sudo service docker restart)");
	} else {
		if (!program.ours)
			findings_add(docker->findings, "docker.other-runtime", SEVERITY_NOTE, "--runtime=nvidia goes to %s, which is not ctr-gpu's", program.path);
		return;
	}
	close_door(docker, DOOR(RUNTIME));
}

/* Names of shims, "io.containerd.kata.v2", and Docker's own are not in the file. */
static bool is_built_in(const char *name)
{
	return streq(name, "runc") || strchr(name, '.') || strchr(name, '/');
}

/* Where containers are made by a runtime that is gone, whatever door they ask by. */
static void judge_default(const struct docker *docker)
{
	const char *name = json_string_value(json_object_get(docker->config, "default-runtime")), *path;
	_cleanup_program_ struct program program = {0};

	if (docker->info)
		name = json_string_value(json_object_get(docker->info, "DefaultRuntime"));
	if (!name || is_built_in(name))
		return;
	path = json_string_value(json_object_get(runtime_of(docker, name), "path"));
	if (path && find_program(docker, path, &program))
		return;
	if (!path && json_object_get(runtime_of(docker, name), "runtimeType"))
		return;
	findings_add(docker->findings, "docker.default-runtime", SEVERITY_PROBLEM, "its default runtime is %s, and %s%s", name, path ? path : "there is no such runtime",
		     path ? " is not there: no container starts" : "");
	findings_advise(docker->findings, "Correct \"default-runtime\" in %s, and restart Docker; what ctr-gpu wrote goes with: sudo ctr-gpu setup --remove all",
			docker->config_path);
	close_door(docker, ALL_DOORS);
}

/* ---- all of it ---- */

static void add(struct examination *examination, const struct docker *docker)
{
	const char *kind = docker->snap ? " (snap)" : docker->rootless ? " (rootless)" : "";
	const char *state = docker->daemon.pid == 0 ? "not running" : "running";
	struct host_engine *engine = engines_add(&examination->engines, "docker", "Docker", "%s%.24s%s, %s", docker->version ? " " : "",
					    docker->version ? docker->version : "", kind, state);

	engine_has(engine, DOOR_GPUS, "--gpus all");
	engine_has(engine, DOOR_RUNTIME, "--runtime=nvidia");
	engine_has_cdi(engine, examination, "--device");
}

void check_docker(struct examination *examination)
{
	__attribute__((cleanup(docker_clear))) struct docker docker = {
		.findings = &examination->findings, .daemon = DAEMON_NONE, .root = ROOTFS_CLOSED,
	};

	if (!find(&docker))
		return;
	add(examination, &docker);
	read_config(&docker);
	judge_socket(&docker);
	judge_default(&docker);
	judge_gpus(examination, &docker);
	judge_runtime(&docker);
	judge_cdi(&docker);
}

/* It shares its client and socket with a distribution, and has its daemon and its toolkit in one of its own. */
void check_docker_desktop(struct examination *examination)
{
	if (!file_exists("/mnt/wsl/docker-desktop"))
		return;
	engine_has(engines_add(&examination->engines, "docker-desktop", "Docker Desktop", "%s", ""), DOOR_GPUS, "--gpus all");
	findings_add(&examination->findings, "docker-desktop.own", SEVERITY_NOTE,
		     "Docker Desktop runs in a distribution of its own: --gpus there is its own, and nothing here reaches it");
	findings_advise(&examination->findings, "To use ctr-gpu, install docker.io in this distribution and turn off its WSL integration here.");
}
