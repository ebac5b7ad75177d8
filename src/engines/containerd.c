/* SPDX-License-Identifier: Apache-2.0 */

#include "engines/containerd_dump.h"
#include "engines/engine.h"

static const char remark[] =
	"containerd before 2.0 reads specs for Kubernetes only with enable_cdi = true in its config.toml";

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
	.dump = containerd_dump,
	.option = "--config",
	.letter = "-c",
	.rancher_file = "/var/lib/rancher/k3s/agent/etc/containerd/config.toml",
	/* The CRI plugin's, by the file's version, from 1 on. */
	.sections = (const char *const[]){"plugins/cri", "plugins/io.containerd.grpc.v1.cri",
					  "plugins/io.containerd.cri.v1.runtime", NULL},
	.runtime = "containerd/runtimes/nvidia/options/BinaryName",
	.default_runtime = "containerd/default_runtime_name",
	.cdi = "enable_cdi",
	.cdi_dirs = "cdi_spec_dirs",
	.cdi_on = "enable_cdi = true",
	.uses = {[METHOD_RUNTIME] = "runtime class nvidia", [METHOD_CDI] = "CDI", [METHOD_CLI] = "ctr run --gpus 0"},
	.releases =
		(const struct engine_release[]){
			{1, 7, "0.5.0", remark},
			{2, 0, "0.8.0", NULL},
			{2, 1, "1.0.0", NULL},
			{0},
		},
};
