/* SPDX-License-Identifier: Apache-2.0 */

/*
 * containerd: one TOML file; each version of the file has another name for the CRI plugin. Files that it
 * imports replace the whole of a plugin's section before containerd 2, so ours is no such file but goes into the file
 * itself.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "cli/output.h"
#include "cli/setup/setup.h"
#include "cli/setup/toml_file.h"
#include "engines/toml_text.h"

#define SHIM "io.containerd.runc.v2"
#define QUOTED_SHIM "\"" SHIM "\""

/* Paths in a file of one version. */
struct layout {
	const char *section;
	char *containerd, *runtimes, *nvidia, *options, *binary;
	int version;
};

static void containerd_clear(struct layout *layout)
{
	free(layout->containerd);
	free(layout->runtimes);
	free(layout->nvidia);
	free(layout->options);
	free(layout->binary);
}

/* ---- which daemon, which file ---- */

static int containerd_check_generated(const struct setup *setup)
{
	const char *used = daemon_option(&setup->daemon, engine_containerd.option, engine_containerd.letter);

	if (setup->remove || setup->config || !used || !strstr(used, "/rancher/"))
		return 0;
	return output_complain(
		"the containerd that runs (process %d) reads %s, which k3s or RKE2 writes again at every start\n"
		"    They find nvidia-container-runtime by themselves: install the package ctr-gpu-nvidia-compat and "
		"restart them.",
		setup->daemon.pid, used);
}

static int containerd_look(struct setup *setup)
{
	int r;

	r = setup_find_daemon(setup, geteuid(), daemon_stands_alone);
	if (!r)
		r = containerd_check_generated(setup);
	if (!r)
		r = setup_find_path(setup, engine_containerd.files[0], engine_containerd.user_files[0]);
	/* Before anything is written. */
	if (!r && setup->daemon.pid && !setup->remove && !daemon_sees(&setup->daemon, setup->runtime))
		setup_say(setup, "the containerd that runs (process %d) has files of its own, and does not see %s",
			  setup->daemon.pid, setup->runtime);
	return r;
}

/* ---- the file ---- */

static char *containerd_join(const char *table, const char *name)
{
	return table ? text_format("%s/%s", table, name) : NULL;
}

static int containerd_find_layout(const struct setup *setup, const struct text *text, bool empty, struct layout *ret)
{
	_cleanup_free_ char *written = NULL;
	int version = empty ? 2 : 1, r;

	r = toml_text_get(text, "version", &written);
	if (r == 0)
		version = atoi(written);
	if (version < 1 || version > 3)
		return output_complain("%s has version %s, which is not known\n    Versions 1, 2 and 3 are.",
				       setup->path, written);
	ret->section = engine_containerd.sections[version - 1];
	ret->version = version;
	ret->containerd = containerd_join(ret->section, "containerd");
	ret->runtimes = containerd_join(ret->containerd, "runtimes");
	ret->nvidia = containerd_join(ret->runtimes, "nvidia");
	ret->options = containerd_join(ret->nvidia, "options");
	ret->binary = containerd_join(ret->options, "BinaryName");
	return ret->binary && r != -ENOMEM ? 0 : output_no_memory();
}

static int containerd_check_owner(const struct setup *setup, const struct text *text, const struct layout *layout)
{
	_cleanup_free_ char *binary = NULL, *elsewhere = NULL;
	const char *name;
	int r;

	r = setup_find_elsewhere(setup, engine_containerd.imported, layout->binary, &elsewhere);
	if (r)
		return r;
	if (elsewhere && toml_text_mentions(text, "imports"))
		return output_complain(
			"%s, which is imported, has a runtime \"nvidia\" already\n    Remove that file, and try again.",
			elsewhere);
	if (setup->replace || !toml_text_mentions(text, layout->nvidia))
		return 0;
	(void)toml_text_get_string(text, layout->binary, &binary);
	name = binary && strrchr(binary, '/') ? strrchr(binary, '/') + 1 : binary;
	if (name && (streq(name, "ctr-gpu-runtime") || streq(binary, setup->runtime)))
		return 0;
	return output_complain("%s has a runtime \"nvidia\" already: %s\n"
			       "    To take it over, with its old value back after --remove, add --replace.",
			       setup->path, binary && *binary ? binary : "one without a BinaryName");
}

/* Of one that says no shim, the CRI plugin starts runc's; another shim has options of its own. */
static bool containerd_has_runc_shim(const struct text *text, const char *runtime)
{
	_cleanup_free_ char *path = containerd_join(runtime, "runtime_type"), *type = NULL;

	if (!path || !toml_text_mentions(text, runtime))
		return false;
	(void)toml_text_get_string(text, path, &type);
	return !type || !*type || streq(type, SHIM);
}

/*
 * A runtime like the one that is used now or, if that has another shim, like runc: all runtimes of a node have to
 * share some settings.
 */
static int containerd_copy_runtime(struct toml_file *file, const struct layout *layout)
{
	static const char *const own[] = {"runtime_type", NULL}, *const own_options[] = {"BinaryName", NULL};
	_cleanup_free_ char *path = containerd_join(layout->containerd, "default_runtime_name"), *name = NULL;
	_cleanup_free_ char *runc = containerd_join(layout->runtimes, "runc"), *used = NULL, *options = NULL;
	const char *from;
	int r;

	if (path)
		(void)toml_text_get_string(file->text, path, &name);
	used = containerd_join(layout->runtimes, name ? name : "runc");
	if (!path || !runc || !used)
		return -ENOMEM;
	from = containerd_has_runc_shim(file->text, used)   ? used
	       : containerd_has_runc_shim(file->text, runc) ? runc
							    : NULL;
	r = toml_file_put(file, layout->nvidia, "runtime_type", QUOTED_SHIM);
	if (r < 0 || !from)
		return r;
	options = containerd_join(from, "options");
	r = options ? toml_file_copy(file, file->text, from, layout->nvidia, own) : -ENOMEM;
	return r < 0 ? r : toml_file_copy(file, file->text, options, layout->options, own_options);
}

static bool containerd_is_empty(const struct text *text, const char *table)
{
	_cleanup_toml_ struct toml toml = {0};
	struct text_error error;

	return toml_text_scan(text, &toml, &error) == 0 && !json_object_size(toml_text_walk(&toml, table, NULL));
}

static int containerd_put_runtime(const struct setup *setup, struct toml_file *file, const struct layout *layout)
{
	_cleanup_free_ char *binary = setup_quote_runtime(setup), *runc = containerd_join(layout->runtimes, "runc");
	bool only = containerd_is_empty(file->text, layout->runtimes);
	int r = binary && runc ? 0 : -ENOMEM;

	if (r == 0 && !toml_text_mentions(file->text, layout->nvidia))
		r = containerd_copy_runtime(file, layout);
	if (r == 0)
		r = toml_file_put(file, layout->options, "BinaryName", binary);
	/* Before containerd 2 the first runtime that a file names replaces the one that containerd has by itself. */
	if (r == 0 && only && layout->version < 3)
		r = toml_file_put(file, runc, "runtime_type", QUOTED_SHIM);
	return setup_check_toml(setup, r, layout->options);
}

static int containerd_put_cdi(const struct setup *setup, struct toml_file *file, const struct layout *layout)
{
	_cleanup_free_ char *path = containerd_join(layout->section, engine_containerd.cdi), *now = NULL;
	int r;

	r = path ? toml_text_get(file->text, path, &now) : -ENOMEM;
	/* containerd 2 has it on. */
	if (r == -ENOENT && layout->version == 3)
		return 0;
	if (r != -ENOMEM)
		r = toml_file_put(file, layout->section, engine_containerd.cdi, "true");
	return setup_check_toml(setup, r, layout->section);
}

/* What is right, and yet not enough. */
static void containerd_warn(const struct setup *setup, const struct text *text, const struct layout *layout)
{
	_cleanup_free_ char *disabled = NULL;

	if (layout->version == 1)
		setup_say(setup,
			  "%s is of version 1, from which containerd 2 takes no runtimes: \"containerd config "
			  "migrate\" prints a newer one",
			  setup->path);
	if (toml_text_get(text, "disabled_plugins", &disabled) == 0 && strstr(disabled, "cri\""))
		setup_say(setup,
			  "%s turns the CRI plugin off (disabled_plugins), which Kubernetes needs and runtimes are for",
			  setup->path);
}

static int containerd_edit(const struct setup *setup, struct text *text)
{
	__attribute__((cleanup(containerd_clear))) struct layout layout = {0};
	_cleanup_toml_file_ struct toml_file file = {.text = text};
	bool empty = strspn(text->size ? text->data : "", " \t\r\n") == text->size;
	int r;

	r = containerd_find_layout(setup, text, empty, &layout);
	if (!r)
		r = containerd_check_owner(setup, text, &layout);
	if (r)
		return r;
	containerd_warn(setup, text, &layout);
	if (empty)
		r = setup_check_toml(setup, toml_file_put(&file, "", "version", "2"), "");
	if (!r)
		r = containerd_put_cdi(setup, &file, &layout);
	if (!r)
		r = containerd_put_runtime(setup, &file, &layout);
	/* Not before, since it is the default's settings that were copied. */
	if (!r && setup->set_default)
		r = setup_check_toml(setup,
				     toml_file_put(&file, layout.containerd, "default_runtime_name", "\"nvidia\""),
				     layout.containerd);
	return r ? r : setup_check_toml(setup, toml_file_finish(&file), "");
}

static int containerd_forget_section(struct text *text, const char *section)
{
	_cleanup_free_ char *path = containerd_join(section, engine_containerd.runtime), *binary = NULL;
	_cleanup_free_ char *table = containerd_join(section, "containerd/runtimes/nvidia");
	_cleanup_free_ char *chosen = containerd_join(section, engine_containerd.default_runtime), *name = NULL;
	int r = 0;

	if (!path || !table || !chosen)
		return -ENOMEM;
	if (toml_text_get_string(text, path, &binary) == 0 && strstr(binary, "/ctr-gpu-runtime"))
		r = toml_file_remove(text, table);
	/* The CRI plugin does not start with the name of a runtime that there is not. */
	if (r == 0 && !toml_text_mentions(text, table) && toml_text_get_string(text, chosen, &name) == 0 &&
	    streq(name, "nvidia"))
		r = toml_file_remove(text, chosen);
	return r;
}

static int containerd_forget(struct text *text)
{
	int r;

	r = toml_file_cut(text, NULL);
	for (size_t i = 0; engine_containerd.sections[i] && r == 0; i++)
		r = containerd_forget_section(text, engine_containerd.sections[i]);
	return r;
}

const struct setup_engine setup_containerd = {
	.facts = &engine_containerd,
	.format = &setup_toml,
	.look = containerd_look,
	.edit = containerd_edit,
	.forget = containerd_forget,
	.advise = setup_advise_restart,
};
