/* SPDX-License-Identifier: Apache-2.0 */

/*
 * containerd (and nerdctl, and k3s): CDI, a runtime for Kubernetes, and `ctr run --gpus`, which runs nvidia-container-cli. LXC and
 * Apptainer run that, too.
 */

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "doctor/engine.h"
#include "doctor/file.h"
#include "doctor/package.h"
#include "engine/program.h"

/* Whether a line that is no comment has both. */
static bool has_line(const char *text, const char *key, const char *value)
{
	for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		size_t length = strcspn(line, "\n"), blank = strspn(line, " \t");
		const char *found = memmem(line, length, key, strlen(key));

		if (line[blank] != '#' && found && memmem(found, length - (size_t)(found - line), value, strlen(value)))
			return true;
	}
	return false;
}

static char *read_config(const struct daemon *daemon)
{
	static const char k3s[] = "/var/lib/rancher/k3s/agent/etc/containerd/config.toml";
	const char *path = daemon_option(daemon, "--config", "-c");

	if (!path)
		path = daemon_mentions(daemon, "/k3s/") ? k3s : "/etc/containerd/config.toml";
	return file_text(path);
}

/* Which programs `ctr run --gpus` and others start by this name. */
static void find_cli(const struct rootfs *root, const char *path, struct ways *ways, const char *way)
{
	_cleanup_program_ struct program program = {0};

	if (program_find(root, path ? path : PROGRAM_PATH, "nvidia-container-cli", &program))
		ways_add(ways, "%s (%s)", way, program.ours ? "ctr-gpu's nvidia-container-cli" : "another toolkit's");
}

static void add_kubernetes(const char *config, struct ways *ways)
{
	if (config && (has_line(config, "BinaryName", "nvidia-container-runtime") || has_line(config, "BinaryName", "ctr-gpu-runtime")))
		ways_add(ways, "runtime class nvidia");
}

/* Version 2 has CDI on unless it is turned off, 1.7 off unless it is turned on. */
static bool has_cdi(const char *config, const char *version)
{
	if (config && has_line(config, "enable_cdi", "true"))
		return true;
	return version_number(version) >= VERSION(2, 0) && !(config && has_line(config, "enable_cdi", "false"));
}

/* Docker starts one for itself alone. */
static bool is_docker_s_only(void)
{
	_cleanup_daemon_ struct daemon any = DAEMON_NONE;
	_cleanup_rootfs_ struct rootfs root = ROOTFS_CLOSED;

	if (engine_find_daemon("containerd", NULL, &any, &root) == 0 && any.pid > 0)
		return true;
	return program_is_here("dockerd") && !file_exists("/etc/containerd/config.toml");
}

void engine_containerd(struct examination *examination, struct engines *engines)
{
	static const char *const packages[] = {"containerd.io", "containerd", NULL};
	_cleanup_daemon_ struct daemon daemon = DAEMON_NONE;
	_cleanup_rootfs_ struct rootfs root = ROOTFS_CLOSED;
	_cleanup_free_ char *version = NULL, *config = NULL;
	struct ways ways = {0};
	char name[64];

	if (engine_find_daemon("containerd", daemon_stands_alone, &daemon, &root) < 0 || (daemon.pid == 0 && !program_is_here("containerd")))
		return;
	if (daemon.pid == 0 && is_docker_s_only())
		return;
	version = package_version(packages);
	config = read_config(&daemon);
	add_kubernetes(config, &ways);
	if (has_cdi(config, version))
		ways_add_cdi(&ways, examination, "CDI");
	find_cli(&root, daemon_variable(&daemon, "PATH"), &ways, "ctr run --gpus");
	(void)snprintf(name, sizeof(name), "containerd%s%.24s%s", version ? " " : "", version ? version : "", daemon.pid > 0 ? ", running" : "");
	engine_conclude(examination, engines, "containerd", name, &ways, "sudo ctr-gpu setup containerd");
}

/* Those that start nvidia-container-cli themselves have no daemon, and our view of the files. */
static void conclude_cli(struct examination *examination, struct engines *engines, const char *id, const char *name, const char *way)
{
	_cleanup_rootfs_ struct rootfs root = ROOTFS_CLOSED;
	struct ways ways = {0};

	if (rootfs_open(AT_FDCWD, "/", &root) < 0)
		return;
	find_cli(&root, NULL, &ways, way);
	engine_conclude(examination, engines, id, name, &ways, "Install ctr-gpu-nvidia-compat, which has the name nvidia-container-cli.");
}

void engine_lxc(struct examination *examination, struct engines *engines)
{
	if (program_is_here("lxc-start") || program_is_here("incusd") || program_is_here("lxd"))
		conclude_cli(examination, engines, "lxc", "LXC", "lxc.hook.mount = /usr/share/lxc/hooks/nvidia");
}

void engine_apptainer(struct examination *examination, struct engines *engines)
{
	if (program_is_here("apptainer") || program_is_here("singularity"))
		conclude_cli(examination, engines, "apptainer", "Apptainer", "--nvccli");
}
