/* SPDX-License-Identifier: Apache-2.0 */

/*
 * containerd: one TOML file, in which the CRI plugin has another name in each version of the file. Files that it imports
 * replace the whole of a plugin's section before containerd 2, so ours is no such file but goes into the file itself.
 */

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/output.h"
#include "cli/setup/setup.h"
#include "engines/engine.h"
#include "engines/toml_text.h"

#define MACHINE_FILE "/etc/containerd/config.toml"
#define SHIM "io.containerd.runc.v2"

/* Paths in a file of one version. */
struct layout {
	const char *section;
	char *containerd, *runtimes, *nvidia, *options, *binary;
	int version;
};

static void layout_clear(struct layout *layout)
{
	free(layout->containerd);
	free(layout->runtimes);
	free(layout->nvidia);
	free(layout->options);
	free(layout->binary);
}

static int no_memory(void)
{
	return output_complain("out of memory");
}

/* ---- which daemon, which file ---- */

static const char *config_argument(const struct daemon *daemon)
{
	return daemon_option(daemon, "--config", "-c");
}

static int check_generated(const struct setup *setup)
{
	const char *used = config_argument(&setup->daemon);

	if (setup->config || !used || !strstr(used, "/rancher/"))
		return 0;
	return output_complain("the containerd that runs (process %d) reads %s, which k3s or RKE2 writes anew at every start\n"
			       "    They find nvidia-container-runtime by themselves: install the package ctr-gpu-nvidia-compat and restart them.",
			       setup->daemon.pid, used);
}

static int look(struct setup *setup)
{
	int status;

	status = setup_find_daemon(setup, "containerd", geteuid(), daemon_stands_alone);
	if (!status && !setup->remove)
		status = check_generated(setup);
	if (!status)
		status = setup_find_path(setup, "--config", "-c", setup->rootless ? engine_user_file("containerd/config.toml") : strdup(MACHINE_FILE));
	/* Before anything is written. */
	if (!status && setup->daemon.pid && !setup->remove && !daemon_sees(&setup->daemon, setup->runtime))
		setup_say(setup, "the containerd that runs (process %d) has files of its own, and does not see %s", setup->daemon.pid, setup->runtime);
	return status;
}

/* ---- the file ---- */

static char *join(const char *table, const char *name)
{
	return table ? text_format("%s/%s", table, name) : NULL;
}

static int find_layout(const struct setup *setup, const struct text *text, bool empty, struct layout *ret)
{
	_cleanup_free_ char *written = NULL;
	int version = 1, r;

	r = toml_text_get(text, "version", &written);
	if (r == -ENOMEM)
		return no_memory();
	if (r == 0)
		version = atoi(written);
	else if (empty)
		version = 2;
	if (version < 1 || version > 3)
		return output_complain("%s has version %s, which is not known\n    Versions 1, 2 and 3 are.", setup->path, written);
	ret->section = engine_containerd.sections[version - 1];
	ret->version = version;
	ret->containerd = join(ret->section, "containerd");
	ret->runtimes = join(ret->containerd, "runtimes");
	ret->nvidia = join(ret->runtimes, "nvidia");
	ret->options = join(ret->nvidia, "options");
	ret->binary = join(ret->options, "BinaryName");
	return ret->binary ? 0 : no_memory();
}

static int check_owner(const struct setup *setup, const struct text *text, const struct layout *layout)
{
	_cleanup_free_ char *binary = NULL, *elsewhere = NULL;
	const char *name;
	int status;

	status = setup_find_elsewhere(setup, "/etc/containerd/conf.d/*.toml", layout->binary, &elsewhere);
	if (status)
		return status;
	if (elsewhere && toml_text_mentions(text, "imports"))
		return output_complain("%s, which is imported, has a runtime \"nvidia\" already\n    Remove that file, and try again.", elsewhere);
	if (setup->replace || !toml_text_mentions(text, layout->nvidia))
		return 0;
	(void)toml_text_get_string(text, layout->binary, &binary);
	name = binary && strrchr(binary, '/') ? strrchr(binary, '/') + 1 : binary;
	if (name && (strcmp(name, "ctr-gpu-runtime") == 0 || strcmp(binary, setup->runtime) == 0))
		return 0;
	return output_complain("%s has a runtime \"nvidia\" already: %s\n    To take it over, with its old value back after --remove, add "
			       "--replace.", setup->path, binary && *binary ? binary : "one without a BinaryName");
}

/* Of one that says no shim, the CRI plugin starts runc's; another shim has options of its own. */
static bool has_runc_shim(const struct text *text, const char *runtime)
{
	_cleanup_free_ char *path = join(runtime, "runtime_type"), *type = NULL;

	if (!path || !toml_text_mentions(text, runtime))
		return false;
	(void)toml_text_get_string(text, path, &type);
	return !type || !*type || strcmp(type, SHIM) == 0;
}

/* The runtime that is used now or, if that has another shim, runc. @ret stays NULL if the file has neither. */
static int find_model(const struct text *text, const struct layout *layout, char **ret)
{
	_cleanup_free_ char *path = join(layout->containerd, "default_runtime_name"), *name = NULL, *now = NULL, *runc = NULL;

	if (path)
		(void)toml_text_get_string(text, path, &name);
	now = join(layout->runtimes, name ? name : "runc");
	runc = join(layout->runtimes, "runc");
	if (!path || !now || !runc)
		return -ENOMEM;
	if (!has_runc_shim(text, now) && !has_runc_shim(text, runc))
		return 0;
	*ret = strdup(has_runc_shim(text, now) ? now : runc);
	return *ret ? 0 : -ENOMEM;
}

/* A runtime like it, with its settings, such as SystemdCgroup, which all runtimes of a node have to share. */
static int copy_runtime(struct toml_edit *edit, const struct layout *layout)
{
	static const char *const own[] = {"runtime_type", NULL}, *const own_options[] = {"BinaryName", NULL};
	_cleanup_free_ char *from = NULL, *options = NULL;
	int r = find_model(edit->text, layout, &from);

	if (r < 0)
		return r;
	options = join(from, "options");
	if (from && !options)
		return -ENOMEM;
	r = toml_text_put(edit, layout->nvidia, "runtime_type", "\"" SHIM "\"");
	if (r == 0 && from)
		r = toml_text_copy(edit, edit->text, from, layout->nvidia, own);
	return r == 0 && from ? toml_text_copy(edit, edit->text, options, layout->options, own_options) : r;
}

static int put_runtime(const struct setup *setup, struct toml_edit *edit, const struct layout *layout)
{
	_cleanup_free_ char *binary = setup_quote_runtime(setup), *runc = join(layout->runtimes, "runc");
	bool only = toml_text_is_empty(edit->text, layout->runtimes);
	int r = binary && runc ? 0 : -ENOMEM;

	if (r == 0 && !toml_text_mentions(edit->text, layout->nvidia))
		r = copy_runtime(edit, layout);
	if (r == 0)
		r = toml_text_put(edit, layout->options, "BinaryName", binary);
	/* Before containerd 2 the first runtime that a file names replaces the one that containerd has by itself. */
	if (r == 0 && only && layout->version < 3)
		r = toml_text_put(edit, runc, "runtime_type", "\"" SHIM "\"");
	return setup_check_toml(setup, r, layout->options);
}

static int put_cdi(const struct setup *setup, struct toml_edit *edit, const struct layout *layout)
{
	_cleanup_free_ char *path = join(layout->section, "enable_cdi"), *now = NULL;
	int r;

	r = path ? toml_text_get(edit->text, path, &now) : -ENOMEM;
	if (r == -ENOMEM)
		return no_memory();
	/* containerd 2 has it on. */
	if (r < 0 && layout->version == 3)
		return 0;
	return setup_check_toml(setup, toml_text_put(edit, layout->section, "enable_cdi", "true"), layout->section);
}

static bool is_blank(const struct text *text)
{
	return strspn(text->size ? text->data : "", " \t\r\n") == text->size;
}

/* What is right, and yet not enough. */
static int warn(const struct setup *setup, const struct text *text, const struct layout *layout)
{
	_cleanup_free_ char *disabled = NULL;

	if (layout->version == 1)
		setup_say(setup, "%s is of version 1, from which containerd 2 takes no runtimes: \"containerd config migrate\" prints a newer one",
			  setup->path);
	if (toml_text_get(text, "disabled_plugins", &disabled) == -ENOMEM)
		return no_memory();
	if (disabled && strstr(disabled, "cri\""))
		setup_say(setup, "%s turns the CRI plugin off (disabled_plugins), which Kubernetes needs and runtimes are for", setup->path);
	return 0;
}

static int edit_layout(const struct setup *setup, struct toml_edit *edit, const struct layout *layout, bool empty)
{
	int status;

	status = check_owner(setup, edit->text, layout);
	if (!status)
		status = warn(setup, edit->text, layout);
	if (!status && empty)
		status = setup_check_toml(setup, toml_text_put(edit, "", "version", "2"), "");
	if (!status)
		status = put_cdi(setup, edit, layout);
	if (!status)
		status = put_runtime(setup, edit, layout);
	/* Not before, since it is the default's settings that were copied. */
	if (!status && setup->set_default)
		status = setup_check_toml(setup, toml_text_put(edit, layout->containerd, "default_runtime_name", "\"nvidia\""), layout->containerd);
	return status ? status : setup_check_toml(setup, toml_text_finish(edit), "");
}

static int edit(struct setup *setup, struct text *text, json_t *edits)
{
	__attribute__((cleanup(layout_clear))) struct layout layout = {0};
	_cleanup_toml_edit_ struct toml_edit toml = {.text = text, .journal = edits};
	bool empty = is_blank(text);
	int status;

	status = find_layout(setup, text, empty, &layout);
	return status ? status : edit_layout(setup, &toml, &layout, empty);
}

static int forget_section(struct text *text, const char *section)
{
	_cleanup_free_ char *table = join(section, "containerd/runtimes/nvidia"), *path = join(table, "options/BinaryName"), *binary = NULL;
	_cleanup_free_ char *chosen = join(section, "containerd/default_runtime_name"), *name = NULL;
	int r = 0;

	if (!path || !chosen)
		return -ENOMEM;
	if (toml_text_get_string(text, path, &binary) == 0 && strstr(binary, "/ctr-gpu-runtime"))
		r = toml_text_remove_tables(text, table);
	/* The CRI plugin does not start with the name of a runtime that there is not. */
	if (r == 0 && !toml_text_mentions(text, table) && toml_text_get_string(text, chosen, &name) == 0 && strcmp(name, "nvidia") == 0)
		r = toml_text_remove_tables(text, chosen);
	return r;
}

static int forget(struct text *text)
{
	int r;

	r = toml_text_forget(text);
	for (size_t i = 0; engine_containerd.sections[i] && r == 0; i++)
		r = forget_section(text, engine_containerd.sections[i]);
	return r;
}

/* ---- what else there is to do ---- */

static void advise(struct setup *setup, bool changed)
{
	const struct daemon *daemon = &setup->daemon;
	_cleanup_free_ char *command = NULL;

	if (!daemon->pid) {
		setup_say(setup, "no containerd is running; it reads the file when it starts");
		return;
	}
	if (!changed)
		return;
	command = engine_restart_command(&engine_containerd, daemon, setup->rootless, ENGINE_RESTART);
	setup_say(setup, "next: %s", command ? command : "restart containerd");
}

const struct setup_engine setup_containerd = {
	.name = "containerd",
	.look = look,
	.check = toml_text_check,
	.undo = toml_text_undo,
	.edit = edit,
	.forget = forget,
	.advise = advise,
};
