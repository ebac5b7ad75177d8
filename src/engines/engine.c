/* SPDX-License-Identifier: Apache-2.0 */

#include "engines/engine.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/paths.h"
#include "base/str.h"
#include "engines/daemon.h"
#include "engines/text.h"
#include "root/rootfs.h"
#include "system/machine.h"
#include "system/program_output.h"
#include "system/trusted_file.h"

/* ---- the table ---- */

/* What is known of each engine: a table, an entry an engine. */

static const char docker_remark[] =
	"Docker before 28.2 reads specs only with \"features\": {\"cdi\": true} in its daemon.json";

const struct engine engine_docker = {
	.name = "docker",
	.label = "Docker",
	.programs = (const char *const[]){"dockerd", NULL},
	.packages = (const char *const[]){"docker-ce", "docker.io", "moby-engine", "docker", "docker-engine", NULL},
	.daemon = {.name = "dockerd", .socket = "/run/docker.sock", .socket_option = "--host", .socket_letter = "-H"},
	.service = "docker",
	.snap = "/snap/docker/current",
	.desktop = "/mnt/wsl/docker-desktop",
	.format = ENGINE_JSON,
	.files = (const char *const[]){"/etc/docker/daemon.json", NULL},
	.directories = (const char *const[]){"/etc/docker", "/usr/local/etc/docker", NULL},
	.user_files = (const char *const[]){"docker/daemon.json", NULL},
	.option = "--config-file",
	.snap_file = "/var/snap/docker/current/config/daemon.json",
	.runtimes = "runtimes",
	.program = "path",
	.default_runtime = "default-runtime",
	.cdi = "features/cdi",
	.cdi_dirs = "cdi-spec-dirs",
	.cdi_on = "\"features\": {\"cdi\": true}",
	.uses = {[METHOD_GPUS] = "--gpus all", [METHOD_RUNTIME] = "--runtime=nvidia", [METHOD_CDI] = "--device"},
	.releases =
		(const struct engine_release[]){
			{25, 0, "0.6.0", docker_remark},
			{26, 1, "0.7.0", docker_remark},
			{28, 0, "0.8.0", docker_remark},
			{28, 2, "1.0.0", NULL},
			{0},
		},
	.gpus_nvidia = ENGINE_VERSION(29, 2),
	.gpus_amd = ENGINE_VERSION(29, 3),
};

/* The builder of its images, which is a program of its own, too. */
const struct engine engine_buildkit = {
	.name = "buildkit",
	.label = "BuildKit",
	.programs = (const char *const[]){"buildkitd", NULL},
	.packages = (const char *const[]){"buildkit", NULL},
	.releases = (const struct engine_release[]){{0, 20, "0.8.0", NULL}, {0, 22, "1.0.0", NULL}, {0}},
};

/* containers.conf(5), oci-hooks(5). */
const struct engine engine_podman = {
	.name = "podman",
	.label = "Podman",
	.programs = (const char *const[]){"podman", NULL},
	.packages = (const char *const[]){"podman", NULL},
	.files =
		(const char *const[]){
			"/usr/share/containers/containers.conf",
			"/etc/containers/containers.conf",
			"/etc/containers/containers.conf.d/*.conf",
			NULL,
		},
	.user_files = (const char *const[]){"containers/containers.conf", "containers/containers.conf.d/*.conf", NULL},
	.rootless_files =
		(const char *const[]){
			"/etc/containers/containers.rootless.conf",
			"/etc/containers/containers.rootless.conf.d/*.conf",
			"/etc/containers/containers.rootless.conf.d/$UID/*.conf",
			NULL,
		},
	.has_rootless_files = ENGINE_VERSION(5, 7),
	.root_has_user_files = ENGINE_VERSION(5, 0),
	.merged_files =
		(const char *const[]){
			"/usr/share/containers/containers.conf",
			"/usr/share/containers/containers.conf.d/*.conf",
			"/usr/share/containers/containers.rootful.conf.d/*.conf",
			"/usr/share/containers/containers.rootless.conf.d/*.conf",
			"/usr/share/containers/containers.rootless.conf.d/$UID/*.conf",
			"/etc/containers/containers.conf",
			"/etc/containers/containers.conf.d/*.conf",
			"/etc/containers/containers.rootful.conf.d/*.conf",
			"/etc/containers/containers.rootless.conf.d/*.conf",
			"/etc/containers/containers.rootless.conf.d/$UID/*.conf",
			NULL,
		},
	.merges = ENGINE_VERSION(6, 0),
	.variable = "CONTAINERS_CONF",
	.runtimes = "engine/runtimes",
	.default_runtime = "engine/runtime",
	.hooks_dir = "engine/hooks_dir",
	.cdi_dirs = "engine/cdi_spec_dirs",
	.has_cdi_dirs = ENGINE_VERSION(5, 5),
	.hook_directories = (const char *const[]){ENGINE_HOOKS_USR, NULL},
	.cdi_directories = (const char *const[]){PATH_CDI, PATH_CDI_RUN, NULL},
	.uses = {[METHOD_GPUS] = "--gpus all",
		 [METHOD_HOOK] = "-e NVIDIA_VISIBLE_DEVICES=all",
		 [METHOD_RUNTIME] = "--runtime=nvidia",
		 [METHOD_CDI] = "--device"},
	.releases =
		(const struct engine_release[]){
			{4, 1, "0.3.0", NULL},
			{4, 2, "0.4.0", NULL},
			{4, 3, "0.5.0", NULL},
			{4, 7, "0.6.0", NULL},
			{5, 1, "0.7.0", NULL},
			{5, 3, "0.8.0", NULL},
			{5, 6, "1.0.0", NULL},
			{0},
		},
	.gpus_nvidia = ENGINE_VERSION(5, 0),
	.gpus_amd = ENGINE_VERSION(6, 0),
};

static const char containerd_remark[] =
	"containerd before 2.0 reads specs for Kubernetes only with enable_cdi = true in its config.toml";

enum { CONTAINERD_DUMP_MAX = 1024 * 1024 };

/*
 * `containerd --config FILE config dump`: what containerd itself makes of its files, since how it merges those that one
 * imports differs from version to version. Only a program that root alone could have put there is run.
 */
static json_t *engine_dump_containerd(const char *file)
{
	_cleanup_rootfs_ struct rootfs root = ROOTFS_CLOSED;
	_cleanup_text_buffer_ struct text_buffer text = {0};
	_cleanup_program_ struct program program = {0};
	_cleanup_close_ int trusted = -1;
	struct text_buffer_error error;
	json_t *json = NULL;

	if (rootfs_open(AT_FDCWD, "/", &root) < 0 || !path_lookup_find(&root, PATH_LOOKUP_PATH, "containerd", &program))
		return NULL;
	trusted = trusted_file_open(program.path, S_IFREG, TRUSTED_FILE_ROOT_ONLY, O_PATH);
	if (trusted < 0 ||
	    !program_output_read((const char *const[]){program.path, "--config", file, "config", "dump", NULL},
				 PROGRAM_OUTPUT_USUAL_MS, CONTAINERD_DUMP_MAX, &text.data, &text.size))
		return NULL;
	return toml_parse_read(&text, &json, &error) == 0 ? json : NULL;
}

const struct engine engine_containerd = {
	.name = "containerd",
	.label = "containerd",
	.programs = (const char *const[]){"containerd", NULL},
	.packages = (const char *const[]){"containerd.io", "containerd", NULL},
	.daemon = {.name = "containerd",
		   .multicall = "/var/lib/rancher/k3s",
		   .is_wanted = daemon_stands_alone,
		   .socket = "/run/containerd/containerd.sock",
		   .socket_option = "--address",
		   .socket_letter = "-a"},
	.service = "containerd",
	.files = (const char *const[]){"/etc/containerd/config.toml", NULL},
	.directories = (const char *const[]){"/etc/containerd", "/usr/local/etc/containerd", NULL},
	.user_files = (const char *const[]){"containerd/config.toml", NULL},
	.imported = "/etc/containerd/conf.d/*.toml",
	.imports = "imports",
	.imports_merge = 2,
	.dump = engine_dump_containerd,
	.option = "--config",
	.letter = "-c",
	.rancher_file = "/var/lib/rancher/k3s/agent/etc/containerd/config.toml",
	/* The CRI plugin's, by the file's version, from 1 on. */
	.sections = (const char *const[]){"plugins/cri", "plugins/io.containerd.grpc.v1.cri",
					  "plugins/io.containerd.cri.v1.runtime", NULL},
	.runtimes = "containerd/runtimes",
	.program = "options/BinaryName",
	.default_runtime = "containerd/default_runtime_name",
	.cdi = "enable_cdi",
	.cdi_dirs = "cdi_spec_dirs",
	.cdi_on = "enable_cdi = true",
	.uses = {[METHOD_RUNTIME] = "runtime class nvidia", [METHOD_CDI] = "CDI", [METHOD_CLI] = "ctr run --gpus 0"},
	.releases =
		(const struct engine_release[]){
			{1, 7, "0.5.0", containerd_remark},
			{2, 0, "0.8.0", NULL},
			{2, 1, "1.0.0", NULL},
			{0},
		},
};

/* As `crio status config` does: all of it, defaults too. */
static json_t *engine_ask_crio(const struct daemon *daemon)
{
	const char *path = daemon_socket_path(&engine_crio.daemon, daemon);
	_cleanup_text_buffer_ struct text_buffer answer = {0};
	struct text_buffer_error error;
	json_t *json = NULL;

	if (!path || daemon_http_get(path, "/config", &answer) < 0)
		return NULL;
	return toml_parse_read(&answer, &json, &error) == 0 ? json : NULL;
}

const struct engine engine_crio = {
	.name = "crio",
	.alias = "cri-o",
	.label = "CRI-O",
	.programs = (const char *const[]){"crio", NULL},
	.packages = (const char *const[]){"cri-o", NULL},
	.daemon = {.name = "crio", .socket = "/run/crio/crio.sock", .socket_option = "--listen"},
	.service = "crio",
	.files = (const char *const[]){"/etc/crio/crio.conf", "/etc/crio/crio.conf.d/*", NULL},
	.ask = engine_ask_crio,
	.runtimes = "crio/runtime/runtimes",
	.program = "runtime_path",
	.default_runtime = "crio/runtime/default_runtime",
	.hooks_dir = "crio/runtime/hooks_dir",
	.cdi_dirs = "crio/runtime/cdi_spec_dirs",
	.hook_directories = (const char *const[]){ENGINE_HOOKS_USR, NULL},
	.uses = {[METHOD_HOOK] = "-e NVIDIA_VISIBLE_DEVICES=all",
		 [METHOD_RUNTIME] = "runtime class nvidia",
		 [METHOD_CDI] = "CDI"},
	.releases =
		(const struct engine_release[]){
			{1, 24, "0.3.0", NULL},
			{1, 26, "0.5.0", NULL},
			{1, 28, "0.6.0", NULL},
			{1, 30, "0.7.0", NULL},
			{1, 31, "0.8.0", NULL},
			{1, 33, "1.0.0", NULL},
			{0},
		},
};

/* Its hook for mounts runs nvidia-container-cli; so do Incus and LXD. */
const struct engine engine_lxc = {
	.name = "lxc",
	.label = "LXC",
	.programs = (const char *const[]){"lxc-start", "incusd", "lxd", NULL},
	.packages = (const char *const[]){"lxc", "incus", "lxd", NULL},
	.uses = {[METHOD_CLI] = "lxc.hook.mount = /usr/share/lxc/hooks/nvidia"},
};

/* Its --nvccli runs nvidia-container-cli. */
const struct engine engine_apptainer = {
	.name = "apptainer",
	.alias = "singularity",
	.label = "Apptainer",
	.programs = (const char *const[]){"apptainer", "singularity", NULL},
	.packages = (const char *const[]){"apptainer", "singularity-container", NULL},
	.uses = {[METHOD_CLI] = "--nvccli"},
};

const struct engine *const engine_list[] = {
	&engine_docker,   &engine_podman, &engine_containerd, &engine_crio,
	&engine_buildkit, &engine_lxc,    &engine_apptainer,  NULL,
};

/* The first that is there. Where kubelet is, but none of the others, the engine is one of those above. */
static const struct engine_node engine_nodes[] = {
	{"k3s", "/var/lib/rancher/k3s/agent", "/var/lib/rancher/k3s/agent/etc/containerd/config.toml", NULL,
	 "sudo systemctl restart k3s (on an agent, k3s-agent)"},
	{"RKE2", "/var/lib/rancher/rke2/agent", "/var/lib/rancher/rke2/agent/etc/containerd/config.toml", NULL,
	 "sudo systemctl restart rke2-server (on an agent, rke2-agent)"},
	{"k0s", "/var/lib/k0s", "/etc/k0s/containerd.d/*.toml", "/etc/k0s/containerd.d/ctr-gpu.toml",
	 "sudo k0s stop && sudo k0s start"},
	{"MicroK8s", "/var/snap/microk8s/current", "/var/snap/microk8s/current/args/containerd-template.toml",
	 "/var/snap/microk8s/current/args/containerd-template.toml", "sudo snap restart microk8s.daemon-containerd"},
	{"kubelet", ENGINE_NODE_PLUGINS, NULL, NULL, NULL},
};

const char *const engine_containerd_states[] = {
	"/run/containerd",
	"/run/docker/containerd/daemon",
	"/run/snap.docker/containerd/daemon",
	"/run/k3s/containerd", /* RKE2's, too */
	"/run/k0s/containerd",
	"/var/snap/microk8s/common/run/containerd",
	NULL,
};

const struct engine_node *engine_node_find(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(engine_nodes); i++)
		if (file_exists(engine_nodes[i].directory))
			return &engine_nodes[i];
	return NULL;
}

/* ---- engine ---- */

enum { SNAP_FILE_MAX = 256 * 1024 };

const char *const engine_hook_directories[] = {ENGINE_HOOKS_USR, ENGINE_HOOKS_ETC,
					       "/usr/local/share/containers/oci/hooks.d", NULL};

const struct engine *engine_find(const char *name, size_t length)
{
	for (const struct engine *const *engine = engine_list; *engine; engine++) {
		const char *const names[] = {(*engine)->name, (*engine)->alias ? (*engine)->alias : (*engine)->name};

		for (size_t j = 0; j < ARRAY_SIZE(names); j++)
			if (strlen(names[j]) == length && strncmp(names[j], name, length) == 0)
				return *engine;
	}
	return NULL;
}

bool engine_is_installed(const struct engine *engine)
{
	for (const char *const *program = engine->programs; *program; program++)
		if (path_lookup_is_here(*program))
			return true;
	return false;
}

/* ---- versions ---- */

static char *engine_snap_version(const struct engine *engine)
{
	_cleanup_free_ char *path = NULL, *text = NULL;
	const char *line = NULL;

	if (str_format(&path, "%s/meta/snap.yaml", engine->snap) == 0 &&
	    fd_read_file_at(AT_FDCWD, path, SNAP_FILE_MAX, &text, NULL) == 0)
		line = strstr(text, "\nversion: ");
	if (!line)
		return NULL;
	line += strlen("\nversion: ");
	line += strspn(line, "'\"v");
	return strndup(line, strspn(line, "0123456789."));
}

char *engine_version(const struct engine *engine, bool snap)
{
	return snap && engine->snap ? engine_snap_version(engine) : package_version(engine->packages);
}

long engine_version_number(const char *version)
{
	char *end;
	long major, minor;

	if (!version)
		return 0;
	major = strtol(version, &end, 10);
	if (end == version || major < 0 || major > 10000)
		return 0;
	minor = *end == '.' ? strtol(end + 1, NULL, 10) : 0;
	return ENGINE_VERSION(major, minor >= 0 && minor < 1000 ? minor : 999);
}

const struct engine_release *engine_cdi(const struct engine *engine, long version)
{
	const struct engine_release *newest = NULL;

	for (const struct engine_release *release = engine->releases; release && release->cdi; release++)
		if (version >= ENGINE_VERSION(release->major, release->minor))
			newest = release;
	return newest;
}

enum engine_cdi_state engine_cdi_state(const struct engine *engine, long version, int setting)
{
	const struct engine_release *release = engine_cdi(engine, version);

	if (!engine->releases || (version > 0 && !release))
		return ENGINE_CDI_NONE;
	/* The version does not matter if CDI is on in all releases, or if the configuration says. */
	if (setting >= 0 || !engine->releases->remark)
		return setting == 0 ? ENGINE_CDI_OFF : ENGINE_CDI_ON;
	if (version == 0)
		return ENGINE_CDI_UNKNOWN;
	return release->remark ? ENGINE_CDI_OFF : ENGINE_CDI_ON;
}

/* ---- files ---- */

char *engine_user_file(const char *name)
{
	const char *base = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
	char *path;
	int r;

	if (base && base[0] == '/')
		r = str_format(&path, "%s/%s", base, name);
	else
		r = str_format(&path, "%s/.config/%s", home ? home : "", name);
	return r == 0 ? path : NULL;
}

/* The real path of a file that may be missing in a directory that is there, owned by the caller; NULL. */
static char *engine_real_path(const char *path)
{
	const char *name = strrchr(path, '/');
	_cleanup_free_ char *above = NULL, *real = realpath(path, NULL);
	char *result;

	if (real || errno != ENOENT || !name)
		return steal_ptr(real);
	above = strndup(path, (size_t)(name - path));
	real = above ? realpath(above, NULL) : NULL;
	return real && str_format(&result, "%s%s", real, name) == 0 ? result : NULL;
}

/* @directory: without a slash at its end. */
static bool engine_is_below(const char *path, const char *directory)
{
	size_t length = strlen(directory);

	return strncmp(path, directory, length) == 0 && path[length] == '/' && !strstr(path + length, "/../");
}

bool engine_has_file(const struct engine *engine, const char *path)
{
	_cleanup_free_ char *real = engine_real_path(path);

	for (const char *const *known = engine->directories; known && *known; known++) {
		_cleanup_free_ char *directory = realpath(*known, NULL);

		if (directory ? real && engine_is_below(real, directory)
			      : errno == ENOENT && engine_is_below(path, *known))
			return true;
	}
	return false;
}

/* ---- services ---- */

static bool engine_runs_here(const char *manager)
{
	struct stat st;

	return stat(manager, &st) == 0 && S_ISDIR(st.st_mode);
}

char *engine_restart_command(const struct engine *engine, const struct daemon *daemon, bool user, enum engine_step step)
{
	const char *verb = step == ENGINE_START ? "start" : step == ENGINE_RELOAD ? "reload" : "restart";
	/* What reloads is the service manager's own or a signal. */
	const char *plain = step == ENGINE_START ? "start" : "restart";
	_cleanup_free_ char *script = NULL;
	char *command;
	int r;

	if (str_format(&script, "/etc/init.d/%s", engine->service) < 0)
		return NULL;
	if (daemon->snap)
		r = str_format(&command, "snap %s %s", plain, engine->service);
	/* sd_booted(3) looks for this directory, too. */
	else if (engine_runs_here("/run/systemd/system"))
		r = str_format(&command, "systemctl %s%s %s", user ? "--user " : "", verb, engine->service);
	else if (step == ENGINE_RELOAD && daemon->pid)
		r = str_format(&command, "kill -HUP %d", daemon->pid);
	else if (!user && engine_runs_here("/run/openrc"))
		r = str_format(&command, "rc-service %s %s", engine->service, plain);
	else if (!user && access(script, X_OK) == 0)
		r = str_format(&command, "service %s %s", engine->service, plain);
	else if (daemon->pid)
		r = str_format(&command, "kill %d, and start it again as it was started", daemon->pid);
	else
		r = str_format(&command, "%s &", engine->daemon.name);
	return r == 0 ? command : NULL;
}

/* ---- docker api ---- */

/* Where dockerd listens unless it is told otherwise (its rootless mode: in its user's runtime directory). */
static int docker_api_find_socket(const struct daemon *daemon, char **ret)
{
	const struct daemon_kind *kind = &engine_docker.daemon;
	const char *path = daemon_socket_path(kind, daemon), *run = daemon_variable(daemon, "XDG_RUNTIME_DIR");

	if (path && (daemon->uid == 0 || path != kind->socket))
		return str_format(ret, "%s", path);
	if (daemon->uid == 0)
		return -ENOENT;
	return run ? str_format(ret, "%s/docker.sock", run)
		   : str_format(ret, "/run/user/%u/docker.sock", (unsigned)daemon->uid);
}

int docker_api_ask(const struct daemon *daemon, const char *what, json_t **ret)
{
	_cleanup_text_buffer_ struct text_buffer answer = {0};
	_cleanup_free_ char *path = NULL;
	int r = docker_api_find_socket(daemon, &path);

	r = r == -ENOENT ? -ENOTCONN : r < 0 ? r : daemon_http_get(path, what, &answer);
	if (r == 0)
		r = json_parse(answer.data, answer.size, ret, NULL);
	return r == -EINVAL ? -EPROTO : r;
}

json_t *docker_api_get(const struct daemon *daemon, const char *what)
{
	json_t *json = NULL;

	return docker_api_ask(daemon, what, &json) == 0 ? json : NULL;
}

int docker_api_check_access(const struct daemon *daemon)
{
	_cleanup_free_ char *path = NULL;
	_cleanup_close_ int fd = -1;
	int r = docker_api_find_socket(daemon, &path);

	if (r < 0)
		return r;
	fd = fd_connect(path);
	return fd < 0 ? fd : 0;
}
