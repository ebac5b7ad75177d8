/* SPDX-License-Identifier: Apache-2.0 */

/*
 * containerd: one TOML file; each version of the file has another name for the CRI plugin. Before containerd 2 an
 * imported file replaces a plugin's whole section. So setup changes the main file instead of adding one to import.
 */

#include <string.h>

#include "base/json.h"
#include "base/str.h"
#include "cli/output.h"
#include "cli/setup/setup.h"
#include "engines/config.h"

#define SHIM "io.containerd.runc.v2"

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

/* Of one that says no shim, the CRI plugin starts runc's; another shim has options of its own. */
static bool containerd_has_runc_shim(const json_t *runtime)
{
	const char *type = json_string_value(json_object_get(runtime, "runtime_type"));

	return json_is_object(runtime) && (!type || !*type || streq(type, SHIM));
}

/*
 * A runtime like the one that is used now or, if that has another shim, like runc: all runtimes of a node have to
 * share some settings.
 */
static json_t *containerd_make_runtime(const struct setup *setup, const json_t *there, const json_t *plugin)
{
	const char *chosen = json_string_value(json_at(plugin, engine_containerd.default_runtime));
	const json_t *runtimes = json_at(plugin, engine_containerd.runtimes),
		     *used = json_object_get(runtimes, chosen ? chosen : "runc"),
		     *runc = json_object_get(runtimes, "runc"),
		     *model = there                            ? there
			      : containerd_has_runc_shim(used) ? used
			      : containerd_has_runc_shim(runc) ? runc
							       : NULL;
	json_t *table = model ? json_deep_copy(model) : json_object(), *options = json_object_get(table, "options");
	const char *used_program = json_string_value(json_object_get(options, "BinaryName"));

	if (!there)
		(void)json_object_set_new(table, "runtime_type", json_string(SHIM));
	if (!json_is_object(options))
		(void)json_object_set_new(table, "options", options = json_object());
	if (there && used_program && keys_is_ours(setup, used_program))
		return table;
	if (json_object_set_new(options, "BinaryName", json_string(setup->runtime)) == 0)
		return table;
	json_decref(table);
	return NULL;
}

/* Warns of settings that are valid but keep ours from working. */
static void containerd_warn(const struct setup *setup, const json_t *file, json_int_t version)
{
	_cleanup_free_ char *disabled = json_dumps(json_object_get(file, "disabled_plugins"), 0);

	if (version == 1)
		setup_print(setup,
			    "%s is of version 1, from which containerd 2 takes no runtimes: \"containerd config "
			    "migrate\" prints a newer one",
			    setup->path);
	if (disabled && strstr(disabled, "cri\""))
		setup_print(
			setup,
			"%s turns the CRI plugin off (disabled_plugins), which Kubernetes needs and runtimes are for",
			setup->path);
}

/* Before containerd 2 an imported file with settings of the plugin replaces all of the main file's. */
static int containerd_check_imports(struct setup *setup, const json_t *file, json_int_t file_version)
{
	const struct engine *facts = &engine_containerd;
	_cleanup_free_ char *version = engine_version(facts, false),
			    *hiding = engine_config_find_import(facts, setup->file.path, file);

	if (!hiding)
		return 0;
	if (file_version > 2 || engine_version_number(version) >= ENGINE_VERSION(facts->imports_merge, 0))
		return setup_read_config(setup, hiding) || keys_check_others(setup);
	return output_print_advised(
		("%s has settings of the CRI plugin, and containerd before 2 takes nothing else of it then", hiding),
		("Move them to %s, which imports that file, and try again.", setup->path));
}

static int containerd_edit(struct setup *setup, json_t *file)
{
	const struct engine *facts = &engine_containerd;
	bool empty = !json_object_size(file), only;
	json_int_t version = empty ? 2 : 1;
	const json_t *plugin, *written = json_object_get(file, "version");
	const char *section;
	int r = 0;

	if (written && !json_is_integer(written))
		return output_print_advised(
			("%s: \"version\" is not a whole number, and containerd would refuse it too", setup->path),
			("Correct that, and try again."));
	if (written)
		version = json_integer_value(written);
	if (version < 1 || version > 3)
		return output_print_advised(("%s has version %d, which is not known", setup->path, (int)version),
					    ("Versions 1, 2 and 3 are."));
	r = containerd_check_imports(setup, file, version);
	if (r)
		return r;
	containerd_warn(setup, file, version);
	section = facts->sections[version - 1];
	plugin = json_at(file, section);
	only = !json_object_size(json_at(plugin, engine_containerd.runtimes));
	if (empty && json_object_set_new(file, "version", json_integer(2)) < 0)
		r = output_no_memory();
	/* Files of version 3 are containerd 2's, where it is on by default. */
	if (!r)
		r = keys_put_cdi(setup, file, section, version >= 3);
	if (!r)
		r = keys_put_runtime(setup, file, section,
				     containerd_make_runtime(setup, keys_runtime(facts, file, section), plugin));
	/* Before containerd 2 the first runtime that a file names replaces the one that containerd has by itself. */
	if (!r && only && version < 3)
		r = keys_put(setup, file, section, "containerd/runtimes/runc",
			     json_pack("{s:s}", "runtime_type", SHIM));
	return r;
}

const struct setup_engine setup_containerd = {
	.facts = &engine_containerd,
	.look = containerd_look,
	.edit = containerd_edit,
};
