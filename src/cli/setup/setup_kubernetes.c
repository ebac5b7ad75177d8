/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A node of Kubernetes: its engine, whichever and wherever that is, is set up as any other. What tells kubelet of the
 * GPUs is a package of its own.
 */

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/str.h"
#include "cli/output.h"
#include "cli/setup/setup.h"
#include "system/trusted_file.h"

#define KUBERNETES_UNIT "ctr-gpu-device-plugin"

/* CRI-O, where it runs, or where it alone is installed. */
static void kubernetes_find_engine(struct setup *setup)
{
	_cleanup_daemon_ struct daemon crio = DAEMON_NONE, containerd = DAEMON_NONE;
	bool runs = false, other = false;

	if (daemon_find(&engine_crio.daemon, 0, &crio) == 0)
		runs = crio.pid > 0;
	if (daemon_find(&engine_containerd.daemon, 0, &containerd) == 0)
		other = containerd.pid > 0 || engine_is_installed(&engine_containerd);
	setup->engine = runs || (engine_is_installed(&engine_crio) && !other) ? &setup_crio : &setup_containerd;
}

/* k0s has the directory when it has been started once, and reads any file in it. */
static int kubernetes_make_file(const struct setup *setup)
{
	_cleanup_free_ char *directory = strdup(setup->node->file);

	if (!directory)
		return output_no_memory();
	*strrchr(directory, '/') = '\0';
	if (setup->dry_run || setup->remove || file_exists(directory) || mkdir(directory, 0755) == 0)
		return 0;
	return output_print_advised(("%s cannot be made: %s", directory, strerror(errno)),
				    ("Start %s once, and run this as root.", setup->node->label));
}

int kubernetes_choose(struct setup *setup)
{
	setup->node = engine_node_find();
	if (!setup->node && !setup->remove)
		return output_print_advised(("this is no node of Kubernetes: there is no " ENGINE_NODE_PLUGINS),
					    ("Start kubelet once; or set its engine up by name: containerd, crio."));
	if (!setup->node || !setup->node->files) {
		kubernetes_find_engine(setup);
		return 0;
	}
	setup->engine = &setup_containerd;
	if (!setup->node->file)
		return output_print_advised(
			("the containerd of %s reads %s, which is written anew at every start", setup->node->label,
			 setup->node->files),
			("It finds nvidia-container-runtime by itself: install the package ctr-gpu-nvidia-compat, and "
			 "%s.",
			 setup->node->restart));
	setup->config = setup->node->file;
	return kubernetes_make_file(setup);
}

void kubernetes_advise(const struct setup *setup, bool changed)
{
	if (changed && setup->node && setup->node->restart)
		setup_print(setup, "next: %s", setup->node->restart);
	if (setup->remove)
		return;
	setup_print(
		setup,
		"the package ctr-gpu-kubernetes tells kubelet of the GPUs: systemctl enable --now " KUBERNETES_UNIT);
}
