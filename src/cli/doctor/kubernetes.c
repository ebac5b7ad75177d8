/* SPDX-License-Identifier: Apache-2.0 */

/* A node of Kubernetes: what stands between its GPUs and pods, in the order in which it is needed. */

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "cli/doctor/doctor.h"
#include "engines/config.h"
#include "system/trusted_file.h"

#define KUBERNETES_PLUGIN "/usr/libexec/ctr-gpu/ctr-gpu-device-plugin"

/* Whether a file that its containerd reads has the runtime, or turns CDI on. */
static bool kubernetes_has_way(const struct engine_node *node, struct findings *findings)
{
	_cleanup_engine_config_ struct engine_config config = {.cdi = -1};
	_cleanup_rootfs_ struct rootfs root = ROOTFS_CLOSED;
	_cleanup_strv_ struct strv files = {0};
	int r = engine_config_expand(node->files, &files);

	if (r == 0)
		r = rootfs_open(AT_FDCWD, "/", &root);
	for (size_t i = 0; r == 0 && i < files.count; i++)
		r = engine_config_read_file(&engine_containerd, &root, files.items[i], &config);
	if (r == -ENOMEM)
		findings->incomplete = true;
	/* What cannot be read is not said to be missing. */
	return r < 0 || config.unread || config.runtime || config.cdi == 1;
}

/* A plugin that was killed leaves its socket, at which no process listens. To others than root it is closed. */
static bool kubernetes_has_plugin(const char *pattern)
{
	glob_t found = {0};
	bool has = false;

	if (glob(pattern, GLOB_NOSORT, NULL, &found) == 0)
		for (size_t i = 0; i < found.gl_pathc && !has; i++) {
			_cleanup_close_ int fd = fd_connect(found.gl_pathv[i]);

			has = fd != -ECONNREFUSED && fd != -ENOENT;
		}
	globfree(&found);
	return has;
}

/* The directory is root's. */
static void kubernetes_check_plugin(struct findings *findings)
{
	if (access(ENGINE_NODE_PLUGINS, R_OK | X_OK) < 0 && errno == EACCES)
		findings_add(findings, "kubernetes.unknown", SEVERITY_NOTE,
			     "whether kubelet has a device plugin for GPUs, root alone can see\nsudo ctr-gpu doctor");
	else if (kubernetes_has_plugin(ENGINE_NODE_PLUGINS "/ctr-gpu-*.sock"))
		findings_add(findings, "kubernetes.plugin", SEVERITY_OK,
			     "ctr-gpu-device-plugin tells kubelet of this node's GPUs");
	else if (!file_exists(KUBERNETES_PLUGIN))
		findings_add(findings, "kubernetes.no-plugin", SEVERITY_WARNING,
			     "kubelet is told of no GPU: ctr-gpu-device-plugin is not installed\n"
			     "Install the package ctr-gpu-kubernetes, and sudo systemctl enable --now "
			     "ctr-gpu-device-plugin");
	else
		findings_add(findings, "kubernetes.no-plugin", SEVERITY_WARNING,
			     "kubelet is told of no GPU: ctr-gpu-device-plugin does not run\n"
			     "sudo systemctl enable --now ctr-gpu-device-plugin");
	if (kubernetes_has_plugin(ENGINE_NODE_PLUGINS "/nvidia*.sock"))
		findings_add(findings, "kubernetes.two-plugins", SEVERITY_WARNING,
			     "NVIDIA's device plugin offers nvidia.com/gpu here, too, and kubelet heeds the one that "
			     "came last\nRemove NVIDIA's DaemonSet: kubectl get daemonsets --all-namespaces");
}

static void kubernetes_check_engine(const struct engine_node *node, struct findings *findings)
{
	static const char format[] = "the containerd of %s has no runtime \"nvidia\" and no CDI (%s)\n%s%s%s";
	static const char package[] =
		"Install the package ctr-gpu-nvidia-compat: its nvidia-container-runtime is found "
		"at the next start; ";

	if (!node->files || kubernetes_has_way(node, findings))
		return;
	findings_add(findings, "kubernetes.no-runtime", SEVERITY_WARNING, format, node->label, node->files,
		     node->file ? "sudo ctr-gpu setup kubernetes" : package, node->file ? " && " : "", node->restart);
}

/* A machine whose node offers no GPUs may be healthy: a warning at most. */
void check_kubernetes(struct doctor_context *examination)
{
	struct findings *findings = &examination->findings;
	const struct engine_node *node = engine_node_find();

	if (!node)
		return;
	findings_add(findings, "kubernetes.node", SEVERITY_OK, "this is a node of Kubernetes, by %s (%s)", node->label,
		     node->directory);
	kubernetes_check_engine(node, findings);
	kubernetes_check_plugin(findings);
}
