/* SPDX-License-Identifier: Apache-2.0 */

#include "engines/engine.h"

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
	.runtime = "engine/runtimes/nvidia",
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
