/* SPDX-License-Identifier: Apache-2.0 */

/* Engines whose files are TOML; and a node of Kubernetes, which has one of them. */

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.h"
#include "base/str.h"
#include "cli/output.h"
#include "cli/setup/setup.h"
#include "system/trusted_file.h"

/* ---- containerd ---- */

/*
 * One file; each version of it has another name for the CRI plugin. Before containerd 2 an imported file replaces a
 * plugin's whole section. So setup changes the main file instead of adding one to import.
 */

#define RUNC_SHIMS "io.containerd.runc."
#define SHIM RUNC_SHIMS "v2"

static int containerd_look(struct setup *setup)
{
	const char *used = daemon_option(&setup->daemon, engine_containerd.option, engine_containerd.letter);

	if (setup->remove || setup->config || !used || !strstr(used, "/rancher/"))
		return setup_refuse_user(setup);
	return output_print_advised(
		("the containerd that runs (process %d) reads %s, which k3s or RKE2 writes again at every start",
		 setup->daemon.pid, used),
		("They find nvidia-container-runtime by themselves: install the package ctr-gpu-nvidia-compat and "
		 "restart them."));
}

/* Of one that says no shim, the CRI plugin starts runc's, of which v1 is an old one; others have their own options. */
static bool containerd_has_runc_shim(const json_t *runtime)
{
	const char *type = json_string_value(json_object_get(runtime, "runtime_type"));

	return json_is_object(runtime) && (!type || !*type || str_has_prefix(type, RUNC_SHIMS));
}

/*
 * A runtime like the one that is used now or, if that has another shim, like runc: all runtimes of a node have to
 * share some settings. One of another shim does not run our program, whatever it is called.
 */
static json_t *containerd_make_runtime(const struct setup *setup, const json_t *plugin)
{
	const json_t *runtimes = json_at(plugin, engine_containerd.runtimes), *old = keys_runtime(setup);
	const json_t *there = containerd_has_runc_shim(old) ? old : NULL;
	const char *chosen = json_string_value(json_at(plugin, engine_containerd.default_runtime));
	const json_t *used = json_object_get(runtimes, chosen ? chosen : "runc");
	const json_t *runc = json_object_get(runtimes, "runc");
	const json_t *model = there                            ? there
			      : containerd_has_runc_shim(used) ? used
			      : containerd_has_runc_shim(runc) ? runc
							       : NULL;
	_cleanup_json_ json_t *table = model ? json_deep_copy(model) : json_object();
	json_t *options = json_object_get(table, "options");
	const char *used_program = json_string_value(json_object_get(options, "BinaryName"));

	if (!there)
		(void)json_object_set_new(table, "runtime_type", json_string(SHIM));
	if (!json_is_object(options))
		(void)json_object_set_new(table, "options", options = json_object());
	if (there && used_program && keys_is_ours(setup, used_program))
		return steal_ptr(table);
	return json_object_set_new(options, "BinaryName", json_string(setup->runtime)) < 0 ? NULL : steal_ptr(table);
}

/* Warns of settings that are valid but keep ours from working. */
static void containerd_warn(const struct setup *setup, json_int_t version)
{
	if (version == 1)
		setup_print(setup,
			    "%s is of version 1, from which containerd 2 takes no runtimes: "
			    "\"containerd config migrate\" prints a newer one",
			    setup->path);
	if (engine_config_has_no_cri(setup->then))
		setup_print(setup,
			    "%s turns the CRI plugin off (disabled_plugins), which Kubernetes needs and runtimes "
			    "are for",
			    setup->path);
}

/* Before containerd 2 an imported file with settings of the plugin replaces all of the main file's. */
static int containerd_check_imports(struct setup *setup, json_int_t file_version)
{
	const struct engine *facts = &engine_containerd;
	_cleanup_free_ char *version = engine_version(facts, false),
			    *hiding = engine_config_find_import(facts, setup->file.path, setup->then);

	if (!hiding)
		return 0;
	if (file_version > 2 || engine_version_number(version) >= ENGINE_VERSION(facts->imports_merge, 0)) {
		setup->found.cdi = -1;
		if (setup_read_config(setup, hiding) || keys_check_others(setup))
			return EXIT_STATUS_FAILURE;
		if (setup->found.cdi == 0)
			setup_print(setup, "%s turns CDI off (%s), and counts more than %s; CDI devices need it",
				    hiding, facts->cdi, setup->path);
		return 0;
	}
	return output_print_advised(
		("%s has settings of the CRI plugin, and containerd before 2 takes nothing else of it then", hiding),
		("Move them to %s, which imports that file, and try again.", setup->path));
}

static int containerd_edit(struct setup *setup)
{
	const json_t *written = json_object_get(setup->then, "version"), *plugin;
	bool empty = !json_object_size(setup->then), only;
	json_int_t version = written ? json_integer_value(written) : empty ? 2 : 1;

	if (written && !json_is_integer(written))
		return output_print_advised(
			("%s: \"version\" is not a whole number, and containerd would refuse it too", setup->path),
			("Correct that, and try again."));
	if (version < 1 || version > 3)
		return output_print_advised(("%s has version %d, which is not known", setup->path, (int)version),
					    ("Versions 1, 2 and 3 are."));
	if (containerd_check_imports(setup, version))
		return EXIT_STATUS_FAILURE;
	containerd_warn(setup, version);
	setup->section = engine_containerd.sections[version - 1];
	plugin = json_at(setup->then, setup->section);
	only = !json_object_size(json_at(plugin, engine_containerd.runtimes));
	if (empty && json_object_set_new(setup->then, "version", json_integer(2)) < 0)
		return output_no_memory();
	/* Files of version 3 are containerd 2's, where it is on by default. */
	if (keys_put_cdi(setup, version >= 3) || keys_put_runtime(setup, containerd_make_runtime(setup, plugin)))
		return EXIT_STATUS_FAILURE;
	if (!only || version >= 3)
		return 0;
	/* Before containerd 2 the first runtime that a file names replaces the one that containerd has by itself. */
	return keys_put(setup, "containerd/runtimes/runc", json_pack("{s:s}", "runtime_type", SHIM));
}

const struct setup_engine setup_containerd = {
	.facts = &engine_containerd,
	.look = containerd_look,
	.edit = containerd_edit,
};

/* ---- CRI-O ---- */

/* A file of our own among those that it reads one after the other, the later ones winning. */

static int crio_look(struct setup *setup)
{
	if (setup->rootless)
		return output_print_advised(("CRI-O runs as root only"), ("Run this without --rootless."));
	return setup_refuse_user(setup);
}

/* A runtime for virtual machines has settings of its own; one that inherits starts the default's program. */
static bool crio_is_model(const json_t *runtime)
{
	const char *type = json_string_value(json_object_get(runtime, "runtime_type"));

	return json_is_object(runtime) && !(type && streq(type, "vm")) &&
	       !json_is_true(json_object_get(runtime, "inherit_default_runtime"));
}

/*
 * The current runtime's settings, such as the monitor's path and the allowed annotations. Ours gets the same, since it
 * starts that runtime.
 */
static json_t *crio_model(const struct setup *setup)
{
	const char *chosen = setup->found.default_runtime, *const names[] = {chosen ? chosen : "runc", "runc", "crun"};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		json_t *runtime = json_object_get(setup->found.runtimes, names[i]);

		if (crio_is_model(runtime))
			return runtime;
	}
	return NULL;
}

static int crio_edit(struct setup *setup)
{
	json_t *there = keys_runtime(setup), *model = crio_is_model(there) ? there : crio_model(setup);
	_cleanup_json_ json_t *table = model ? json_deep_copy(model) : json_object();

	if (json_object_set_new(table, "runtime_path", json_string(setup->runtime)) < 0 ||
	    json_object_set_new(table, "runtime_type", json_string("oci")) < 0)
		return output_no_memory();
	return keys_put_runtime(setup, steal_ptr(table));
}

const struct setup_engine setup_crio = {
	.facts = &engine_crio,
	.file = "/etc/crio/crio.conf.d/99-ctr-gpu.conf",
	.look = crio_look,
	.edit = crio_edit,
};

/* ---- Podman ---- */

/*
 * A file of our own among those of containers.conf(5), the machine's or the user's. Podman has no daemon to reload.
 * Containers that ask by NVIDIA_VISIBLE_DEVICES get their GPUs through the hooks directory, without any of this.
 */

#define PODMAN_FILE "containers/containers.conf.d/99-ctr-gpu.conf"
#define HOOK ENGINE_HOOKS_USR "/" ENGINE_HOOK_FILE

static int podman_look(struct setup *setup)
{
	setup->rootless |= geteuid() != 0;
	return 0;
}

static int podman_edit(struct setup *setup)
{
	return keys_put_runtime(setup, json_pack("[s]", setup->runtime));
}

static void podman_advise(const struct setup *setup)
{
	if (!setup->remove && access(HOOK, F_OK) < 0 && access(ENGINE_HOOKS_ETC "/" ENGINE_HOOK_FILE, F_OK) < 0)
		setup_print(setup, HOOK " is not there, so NVIDIA_VISIBLE_DEVICES gives GPUs only to containers with "
					"--runtime=nvidia");
}

const struct setup_engine setup_podman = {
	.facts = &engine_podman,
	.file = "/etc/" PODMAN_FILE,
	.user_file = PODMAN_FILE,
	.look = podman_look,
	.edit = podman_edit,
	.advise = podman_advise,
};

/* ---- Kubernetes ---- */

/* Whichever engine a node has, and wherever that is. What tells kubelet of the GPUs is a package of its own. */

/* CRI-O, where it runs, or where it alone is installed. */
static const struct setup_engine *kubernetes_find_engine(void)
{
	_cleanup_daemon_ struct daemon crio = DAEMON_NONE, containerd = DAEMON_NONE;

	(void)daemon_find(&engine_crio.daemon, 0, &crio);
	(void)daemon_find(&engine_containerd.daemon, 0, &containerd);
	if (crio.pid)
		return &setup_crio;
	return engine_is_installed(&engine_crio) && !containerd.pid && !engine_is_installed(&engine_containerd)
		       ? &setup_crio
		       : &setup_containerd;
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
	const struct engine_node *node = engine_node_find();

	if (!node && !setup->remove)
		return output_print_advised(("this is no node of Kubernetes: there is no " ENGINE_NODE_PLUGINS),
					    ("Start kubelet once; or set its engine up by name: containerd, crio."));
	setup->node = node;
	setup->engine = node && node->files ? &setup_containerd : kubernetes_find_engine();
	if (!node || !node->files)
		return 0;
	if (!node->file)
		return output_print_advised(
			("the containerd of %s reads %s, which is written anew at every start", node->label,
			 node->files),
			("It finds nvidia-container-runtime by itself: install the package ctr-gpu-nvidia-compat, and "
			 "%s.",
			 node->restart));
	setup->config = node->file;
	return kubernetes_make_file(setup);
}

void kubernetes_advise(const struct setup *setup)
{
	if (setup->changed && setup->node && setup->node->restart)
		setup_print(setup, "next: %s", setup->node->restart);
	if (!setup->remove)
		setup_print(setup, "the package ctr-gpu-kubernetes tells kubelet of the GPUs: systemctl enable --now "
				   "ctr-gpu-device-plugin");
}
