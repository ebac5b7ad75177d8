/* SPDX-License-Identifier: Apache-2.0 */

/*
 * containerd (and nerdctl, and k3s): CDI, a runtime for Kubernetes, and `ctr run --gpus`, which runs nvidia-container-cli. LXC and
 * Apptainer run that, too.
 */

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/doctor/doctor.h"
#include "cli/doctor/file.h"
#include "engines/engine.h"
#include "engines/package.h"
#include "engines/program.h"
#include "engines/toml_text.h"

struct containerd {
	struct daemon daemon;
	struct rootfs root;
	char *path, *version; /* of the file; of containerd, NULL: not known */
	char *data;
	struct text text; /* the file, whose bytes are @data */
};

static void containerd_clear(struct containerd *containerd)
{
	daemon_close(&containerd->daemon);
	rootfs_close(&containerd->root);
	free(containerd->path);
	free(containerd->version);
	free(containerd->data);
}

/* ---- its file ---- */

static void read_config(struct containerd *containerd)
{
	static const char k3s[] = "/var/lib/rancher/k3s/agent/etc/containerd/config.toml";
	const char *path = daemon_option(&containerd->daemon, "--config", "-c");

	if (!path)
		path = daemon_mentions(&containerd->daemon, "/k3s/") ? k3s : "/etc/containerd/config.toml";
	containerd->path = strdup(path);
	containerd->data = file_text(path);
	containerd->text = (struct text){containerd->data, containerd->data ? strlen(containerd->data) : 0};
}

/* A string of the CRI plugin, whichever of its sections there is. Return: owned by the caller; NULL if it is not there. */
static char *cri_string(const struct containerd *containerd, const char *below)
{
	char *value = NULL;

	for (size_t i = 0; engine_containerd.sections[i] && !value && containerd->data; i++) {
		_cleanup_free_ char *path = NULL;

		if (str_format(&path, "%s/%s", engine_containerd.sections[i], below) < 0 || toml_text_get_string(&containerd->text, path, &value) < 0)
			value = NULL;
	}
	return value;
}

static bool cri_says(const struct containerd *containerd, const char *below, const char *wanted)
{
	for (size_t i = 0; engine_containerd.sections[i] && containerd->data; i++) {
		_cleanup_free_ char *path = NULL, *value = NULL;

		if (str_format(&path, "%s/%s", engine_containerd.sections[i], below) == 0 && toml_text_get(&containerd->text, path, &value) == 0)
			return streq(value, wanted);
	}
	return false;
}

static bool judge_file(struct findings *findings, const struct containerd *containerd)
{
	struct text_error error = {0};

	if (!containerd->data || toml_text_check(&containerd->text, &error) == 0)
		return true;
	findings_add(findings, "containerd.config", SEVERITY_PROBLEM, "%s:%zu:%zu: %s", containerd->path, error.line, error.column, error.reason);
	findings_advise(findings, "Correct that line: containerd does not start with it.");
	findings_close(findings, "containerd", ALL_DOORS);
	return false;
}

/* ---- doors ---- */

static void judge_runtime(struct findings *findings, const struct containerd *containerd)
{
	_cleanup_free_ char *path = cri_string(containerd, "containerd/runtimes/nvidia/options/BinaryName");
	_cleanup_free_ char *chosen = cri_string(containerd, "containerd/default_runtime_name");
	_cleanup_program_ struct program program = {0};
	bool is_default = chosen && streq(chosen, "nvidia");

	if (!path) {
		findings_add(findings, is_default ? "containerd.runtime" : "containerd.no-runtime", is_default ? SEVERITY_PROBLEM : SEVERITY_NOTE,
			     is_default ? "its default runtime is nvidia, and %s has no such runtime" : "%s has no runtime nvidia", containerd->path);
		findings_advise(findings, "sudo ctr-gpu setup containerd");
	} else if (!(strchr(path, '/') ? program_look(&containerd->root, path, &program) : program_find(&containerd->root, PROGRAM_PATH, path, &program))) {
		findings_add(findings, "containerd.runtime", SEVERITY_PROBLEM, "the program of its runtime nvidia, %s, is not there", path);
		findings_advise(findings, "sudo ctr-gpu setup --replace containerd");
	} else {
		return;
	}
	findings_close(findings, "containerd", is_default ? DOOR(RUNTIME) | DOOR(CDI) : DOOR(RUNTIME));
}

/* Version 2 has CDI on unless it is turned off, 1.7 off unless it is turned on, and before there is none. */
static void judge_cdi(struct findings *findings, const struct containerd *containerd)
{
	long version = engine_version_number(containerd->version);

	if (version > 0 && version < ENGINE_VERSION(1, 7)) {
		findings_add(findings, "containerd.no-cdi", SEVERITY_NOTE, "containerd %s has no CDI; 1.7 and later have it", containerd->version);
	} else if (cri_says(containerd, "enable_cdi", "true") || (version >= ENGINE_VERSION(2, 0) && !cri_says(containerd, "enable_cdi", "false"))) {
		return;
	} else {
		findings_add(findings, "containerd.cdi-off", SEVERITY_NOTE, "enable_cdi is off in %s", containerd->path);
		findings_advise(findings, "sudo ctr-gpu setup containerd");
	}
	findings_close(findings, "containerd", DOOR(CDI));
}

/* The program that `ctr run --gpus` and others start by this name. */
static void judge_cli(struct findings *findings, const char *engine, const struct rootfs *root, const char *path)
{
	_cleanup_program_ struct program program = {0};
	_cleanup_free_ char *id = NULL;

	if (str_format(&id, "%s.%s", engine, "no-cli") < 0) {
		findings->incomplete = true;
	} else if (!program_find(root, path ? path : PROGRAM_PATH, "nvidia-container-cli", &program)) {
		findings_add(findings, id, SEVERITY_NOTE, "there is no nvidia-container-cli");
		findings_advise(findings, "Install ctr-gpu-nvidia-compat, which has the name nvidia-container-cli.");
		findings_close(findings, engine, DOOR(CLI));
	} else if (!program.ours && str_format(&id, "%s.other-toolkit", engine) == 0) {
		findings_add(findings, id, SEVERITY_NOTE, "%s is another toolkit's", program.path);
	}
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

void check_containerd(struct examination *examination)
{
	static const char *const packages[] = {"containerd.io", "containerd", NULL};
	__attribute__((cleanup(containerd_clear))) struct containerd containerd = {.daemon = DAEMON_NONE, .root = ROOTFS_CLOSED};
	struct host_engine *engine;

	if (engine_find_daemon("containerd", daemon_stands_alone, &containerd.daemon, &containerd.root) < 0 ||
	    (containerd.daemon.pid == 0 && !program_is_here("containerd")))
		return;
	if (containerd.daemon.pid == 0 && is_docker_s_only())
		return;
	containerd.version = package_version(packages);
	read_config(&containerd);
	engine = engines_add(&examination->engines, "containerd", "containerd", "%s%.24s%s", containerd.version ? " " : "",
			     containerd.version ? containerd.version : "", containerd.daemon.pid > 0 ? ", running" : "");
	engine_has(engine, DOOR_RUNTIME, "runtime class nvidia");
	engine_has_cdi(engine, examination, "CDI");
	engine_has(engine, DOOR_CLI, "ctr run --gpus 0");
	judge_cli(&examination->findings, "containerd", &containerd.root, daemon_variable(&containerd.daemon, "PATH"));
	if (!judge_file(&examination->findings, &containerd))
		return;
	judge_runtime(&examination->findings, &containerd);
	judge_cdi(&examination->findings, &containerd);
}

/* Those that start nvidia-container-cli themselves have no daemon, and our view of the files. */
static void engine_by_cli(struct examination *examination, const char *id, const char *label, const char *use)
{
	_cleanup_rootfs_ struct rootfs root = ROOTFS_CLOSED;

	if (rootfs_open(AT_FDCWD, "/", &root) < 0)
		return;
	engine_has(engines_add(&examination->engines, id, label, "%s", ""), DOOR_CLI, "%s", use);
	judge_cli(&examination->findings, id, &root, NULL);
}

void check_lxc(struct examination *examination)
{
	if (program_is_here("lxc-start") || program_is_here("incusd") || program_is_here("lxd"))
		engine_by_cli(examination, "lxc", "LXC", "lxc.hook.mount = /usr/share/lxc/hooks/nvidia");
}

void check_apptainer(struct examination *examination)
{
	if (program_is_here("apptainer") || program_is_here("singularity"))
		engine_by_cli(examination, "apptainer", "Apptainer", "--nvccli");
}
