/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Podman: a file of our own among those of containers.conf(5), the machine's or the user's. There is no daemon to
 * notice it. Containers that ask by NVIDIA_VISIBLE_DEVICES get their GPUs through the hooks directory, without any of
 * this.
 */

#include <unistd.h>

#include "cli/setup/keys.h"

#define OWN_FILE "containers/containers.conf.d/99-ctr-gpu.conf"
#define HOOK ENGINE_HOOKS_USR "/" ENGINE_HOOK_FILE

static int podman_look(struct setup *setup)
{
	setup->rootless |= geteuid() != 0;
	return 0;
}

static int podman_edit(struct setup *setup, json_t *file)
{
	return keys_put_runtime(setup, file, "", json_pack("[s]", setup->runtime));
}

static void podman_advise(struct setup *setup, bool changed)
{
	(void)changed;
	if (!setup->remove && access(HOOK, F_OK) < 0 && access(ENGINE_HOOKS_ETC "/" ENGINE_HOOK_FILE, F_OK) < 0)
		setup_print(setup, HOOK " is not there, so NVIDIA_VISIBLE_DEVICES gives GPUs only to containers with "
					"--runtime=nvidia");
}

const struct setup_engine setup_podman = {
	.facts = &engine_podman,
	.file = "/etc/" OWN_FILE,
	.user_file = OWN_FILE,
	.look = podman_look,
	.edit = podman_edit,
	.advise = podman_advise,
};
