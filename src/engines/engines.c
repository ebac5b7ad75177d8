/* SPDX-License-Identifier: Apache-2.0 */

/* What is known of each engine: a table, an entry an engine. */

#include "engines/engine.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "engines/daemon.h"
#include "engines/text.h"
#include "root/rootfs.h"
#include "system/program_output.h"
#include "system/trusted_file.h"

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
	.variable = "CONTAINERS_CONF",
	.runtimes = "engine/runtimes",
	.default_runtime = "engine/runtime",
	.hooks_dir = "engine/hooks_dir",
	.cdi_dirs = "engine/cdi_spec_dirs",
	.hook_directories = (const char *const[]){ENGINE_HOOKS_USR, NULL},
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
	.hook_directories = (const char *const[]){ENGINE_HOOKS_USR, ENGINE_HOOKS_ETC, NULL},
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
