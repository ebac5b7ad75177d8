/* SPDX-License-Identifier: Apache-2.0 */

#include "engines/engine.h"

/* Its hook for mounts runs nvidia-container-cli; so do Incus and LXD. */
const struct engine engine_lxc = {
	.name = "lxc",
	.label = "LXC",
	.programs = (const char *const[]){"lxc-start", "incusd", "lxd", NULL},
	.packages = (const char *const[]){"lxc", "incus", "lxd", NULL},
	.uses = {[METHOD_CLI] = "lxc.hook.mount = /usr/share/lxc/hooks/nvidia"},
};
