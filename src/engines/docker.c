/* SPDX-License-Identifier: Apache-2.0 */

#include "engines/engine.h"

static const char remark[] =
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
	.runtime = "runtimes/nvidia/path",
	.default_runtime = "default-runtime",
	.cdi = "features/cdi",
	.cdi_dirs = "cdi-spec-dirs",
	.cdi_on = "\"features\": {\"cdi\": true}",
	.uses = {[METHOD_GPUS] = "--gpus all", [METHOD_RUNTIME] = "--runtime=nvidia", [METHOD_CDI] = "--device"},
	.releases =
		(const struct engine_release[]){
			{25, 0, "0.6.0", remark},
			{26, 1, "0.7.0", remark},
			{28, 0, "0.8.0", remark},
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
