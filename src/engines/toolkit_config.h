/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * /etc/nvidia-container-runtime/config.toml of a machine that moves to ctr-gpu, which does not read it: the settings
 * that change something and have another name here, another default, or no successor.
 */

#include <stdbool.h>

#define NVIDIA_CONFIG "/etc/nvidia-container-runtime/config.toml"

struct nvidia_setting {
	const char *key;   /* as people write it: "nvidia-container-cli.root" */
	const char *value; /* as the file has it; NULL: it is not there, and NVIDIA's default is another than ours */
	const char *here;  /* what to write into /etc/ctr-gpu/config.json, or what there is instead */
	bool has_successor;
};

/**
 * toolkit_config_each() - the settings that matter
 *
 * Those that /etc/ctr-gpu/config.json has are left out. Nothing is told of a file that is not there or not valid.
 */
void toolkit_config_each(void (*visit)(const struct nvidia_setting *setting, void *user), void *user);
