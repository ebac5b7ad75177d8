/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Docker: --gpus, --runtime and --device. The daemon looks for a hook by name on its own PATH, once, when it starts (moby
 * daemon/devices_nvidia_linux.go), so its environment and its start matter, and not ours.
 */

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "doctor/engine.h"
#include "doctor/file.h"
#include "doctor/package.h"
#include "engine/docker_api.h"
#include "engine/program.h"

enum { CONFIG_MAX = 256 * 1024 };

struct docker {
	struct daemon daemon;
	struct rootfs root;  /* its files; ours where they are not to be seen */
	char *version;       /* NULL: not known */
	bool snap, rootless, answers;
	json_t *config;      /* daemon.json; NULL: none */
	json_t *info;        /* what the daemon says of itself; NULL: it could not be asked */
	struct program hook, cdi_hook;
};

static void docker_clear(struct docker *docker)
{
	daemon_close(&docker->daemon);
	rootfs_close(&docker->root);
	free(docker->version);
	json_decref(docker->config);
	json_decref(docker->info);
	program_clear(&docker->hook);
	program_clear(&docker->cdi_hook);
}

/* ---- what there is ---- */

static const char *search_path(const struct docker *docker)
{
	const char *path = daemon_variable(&docker->daemon, "PATH");

	return path ? path : PROGRAM_PATH;
}

/* In the daemon's own root directory: a snap's is another than ours. */
static json_t *read_config(const struct docker *docker)
{
	const char *path = daemon_option(&docker->daemon, "--config-file", NULL), *home = daemon_variable(&docker->daemon, "HOME");
	_cleanup_free_ char *data = NULL, *own = NULL;
	json_t *json = NULL;
	size_t size;

	if (!path && docker->rootless && home && str_format(&own, "%s/.config/docker/daemon.json", home) == 0)
		path = own;
	if (!path)
		path = docker->snap ? "/var/snap/docker/current/config/daemon.json" : "/etc/docker/daemon.json";
	if (rootfs_read_file(&docker->root, path, CONFIG_MAX, &data, &size) < 0 || json_parse(data, size, &json, NULL) < 0)
		return NULL;
	return json;
}

/* Asking starts a daemon that a service manager would start on demand, so only one that runs already is asked. */
static void ask(struct docker *docker)
{
	_cleanup_json_ json_t *version = NULL;
	const char *text;

	if (docker->daemon.pid == 0)
		return;
	version = docker_api_get(&docker->daemon, "/version");
	text = json_string_value(json_object_get(version, "Version"));
	if (!text)
		return;
	docker->answers = true;
	docker->version = strdup(text);
	docker->info = docker_api_get(&docker->daemon, "/info");
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
	docker->config = read_config(docker);
	(void)program_find(&docker->root, search_path(docker), "nvidia-container-runtime-hook", &docker->hook);
	(void)program_find(&docker->root, search_path(docker), "nvidia-cdi-hook", &docker->cdi_hook);
	return true;
}

/* ---- --gpus ---- */

/* By version 28.2 CDI is on unless turned off, from 25 on it is off unless turned on. */
static bool has_cdi(const struct docker *docker)
{
	const json_t *feature = json_object_get(json_object_get(docker->config, "features"), "cdi");
	const json_t *directories = json_object_get(docker->info, "CDISpecDirs");
	long version = version_number(docker->version);

	if (json_is_array(directories))
		return json_array_size(directories) > 0;
	if (version < VERSION(25, 0))
		return false;
	return json_is_boolean(feature) ? json_is_true(feature) : version >= VERSION(28, 2);
}

static bool has_kind(const struct examination *examination, const char *kind)
{
	return strv_contains(&examination->cdi_kinds, kind);
}

static bool is_late(const struct docker *docker, const struct program *program)
{
	return program->path && daemon_is_older(&docker->daemon, &program->st.st_ctim);
}

static void add_gpus(const struct examination *examination, const struct docker *docker, struct ways *ways)
{
	bool cdi = has_cdi(docker);
	long version = version_number(docker->version);

	if (docker->cdi_hook.path && cdi && version >= VERSION(29, 2) && has_kind(examination, "nvidia.com/gpu"))
		ways_add(ways, "--gpus (CDI)");
	else if (docker->hook.path)
		ways_add(ways, "--gpus (%s hook)", docker->hook.ours ? "ctr-gpu's" : "another toolkit's");
	else if (cdi && version >= VERSION(29, 3) && has_kind(examination, "amd.com/gpu"))
		ways_add(ways, "--gpus (CDI)");
}

static void warn_of_restart(struct examination *examination, const struct docker *docker)
{
	if (!is_late(docker, &docker->hook) && !is_late(docker, &docker->cdi_hook))
		return;
	findings_add(&examination->findings, "docker.restart", SEVERITY_WARNING, "the daemon looked for its hook before %s was there",
		     docker->hook.path ? docker->hook.path : docker->cdi_hook.path);
	findings_advise(&examination->findings, "%s", docker->snap ? "sudo snap restart docker" :
			docker->rootless ? "systemctl --user restart docker" : "sudo systemctl restart docker (without systemd: sudo service docker restart)");
}

/* A hook that we can see and the daemon cannot. */
static void warn_of_path(struct examination *examination, const struct docker *docker)
{
	_cleanup_program_ struct program program = {0};
	_cleanup_rootfs_ struct rootfs root = ROOTFS_CLOSED;

	if (docker->hook.path || rootfs_open(AT_FDCWD, "/", &root) < 0 || !program_find(&root, PROGRAM_PATH, "nvidia-container-runtime-hook", &program))
		return;
	if (!daemon_sees(&docker->daemon, program.path) || docker->snap) {
		findings_add(&examination->findings, "docker.snap", SEVERITY_WARNING, "the daemon has a filesystem of its own (snap?) and does not see %s", program.path);
		findings_advise(&examination->findings, "Use the distribution's docker.io or Docker's own packages; or CDI: docker run --device KIND=all");
	} else {
		findings_add(&examination->findings, "docker.path", SEVERITY_WARNING, "the daemon's PATH does not lead to %s", program.path);
		findings_advise(&examination->findings, "Start dockerd with /usr/bin in its PATH, and restart it.");
	}
}

static void warn_of_other(struct examination *examination, const struct docker *docker)
{
	if (!docker->hook.path || docker->hook.ours)
		return;
	findings_add(&examination->findings, "docker.other-toolkit", SEVERITY_NOTE, "--gpus goes to %s, which is not ctr-gpu's", docker->hook.path);
	findings_advise(&examination->findings, "To have ctr-gpu do it: install ctr-gpu-nvidia-compat in the place of NVIDIA's toolkit.");
}

/* ---- --runtime ---- */

static bool is_loaded(const struct docker *docker)
{
	const json_t *runtimes = json_object_get(docker->info, "Runtimes");

	return !json_is_object(runtimes) || json_object_get(runtimes, "nvidia");
}

static void add_runtime(struct examination *examination, const struct docker *docker, struct ways *ways)
{
	const json_t *runtime = json_object_get(json_object_get(docker->config, "runtimes"), "nvidia");
	const char *path = json_string_value(json_object_get(runtime, "path"));
	_cleanup_program_ struct program program = {0};
	bool found;

	if (!path)
		return;
	found = strchr(path, '/') ? program_look(&docker->root, path, &program)
				  : program_find(&docker->root, search_path(docker), path, &program);
	if (!found) {
		findings_add(&examination->findings, "docker.runtime", SEVERITY_WARNING, "daemon.json names %s for --runtime=nvidia, and there is no such program", path);
		findings_advise(&examination->findings, "sudo ctr-gpu setup --replace docker; or correct \"runtimes\" in daemon.json, and restart the daemon.");
	} else if (docker->answers && !is_loaded(docker)) {
		findings_add(&examination->findings, "docker.runtime", SEVERITY_WARNING, "daemon.json has --runtime=nvidia, and the running daemon does not know it yet");
		findings_advise(&examination->findings, "sudo systemctl reload docker (without systemd: sudo service docker restart)");
	} else {
		ways_add(ways, "--runtime=nvidia");
	}
}

/* ---- all of it ---- */

static void describe(const struct docker *docker, char *text, size_t size)
{
	const char *kind = docker->snap ? " (snap)" : docker->rootless ? " (rootless)" : "";
	const char *state = docker->daemon.pid == 0 ? "not running" : docker->answers ? "running" : "running, not to be asked by you";

	(void)snprintf(text, size, "Docker%s%.24s%s, %s", docker->version ? " " : "", docker->version ? docker->version : "", kind, state);
}

/* Docker Desktop shares its client and socket with a distribution, and has its daemon and its toolkit in one of its own. */
static bool check_desktop(struct examination *examination)
{
	if (!file_exists("/mnt/wsl/docker-desktop"))
		return false;
	findings_add(&examination->findings, "docker.desktop", SEVERITY_NOTE, "Docker Desktop runs in a distribution of its own: --gpus there is its own, not ctr-gpu's");
	findings_advise(&examination->findings, "To use ctr-gpu, install docker.io in this distribution and turn off its WSL integration here.");
	return true;
}

void engine_docker(struct examination *examination, struct engines *engines)
{
	__attribute__((cleanup(docker_clear))) struct docker docker = {.daemon = DAEMON_NONE, .root = ROOTFS_CLOSED};
	struct ways ways = {0};
	char name[96];

	if (check_desktop(examination)) {
		engines->found++;
		engines->ready++;
	}
	if (!find(&docker))
		return;
	add_gpus(examination, &docker, &ways);
	add_runtime(examination, &docker, &ways);
	if (has_cdi(&docker))
		ways_add_cdi(&ways, examination, "--device");
	describe(&docker, name, sizeof(name));
	engine_conclude(examination, engines, "docker", name, &ways,
			docker.rootless ? "ctr-gpu setup docker --rootless" : "sudo ctr-gpu setup docker");
	warn_of_restart(examination, &docker);
	warn_of_path(examination, &docker);
	warn_of_other(examination, &docker);
}
