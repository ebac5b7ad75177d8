/* SPDX-License-Identifier: Apache-2.0 */

#include "engines/engine.h"

const struct engine engine_crio = {
	.name = "crio",
	.alias = "cri-o",
	.label = "CRI-O",
	.programs = (const char *const[]){"crio", NULL},
	.packages = (const char *const[]){"cri-o", NULL},
	.daemon = {.name = "crio", .socket = "/run/crio/crio.sock", .socket_option = "--listen"},
	.service = "crio",
	.files = (const char *const[]){"/etc/crio/crio.conf", "/etc/crio/crio.conf.d/*", NULL},
	.runtime = "crio/runtime/runtimes/nvidia/runtime_path",
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
