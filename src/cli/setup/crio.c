/* SPDX-License-Identifier: Apache-2.0 */

/* CRI-O: a file of our own among those that it reads one after the other, the later ones winning. */

#include <stdlib.h>

#include "base/str.h"
#include "cli/output.h"
#include "cli/setup/setup.h"
#include "cli/setup/toml_file.h"
#include "engines/toml_text.h"

#define OWN_FILE "/etc/crio/crio.conf.d/99-ctr-gpu.conf"
#define RUNTIME "crio/runtime"
#define TABLE RUNTIME "/runtimes/nvidia"

static int crio_look(struct setup *setup)
{
	int r;

	if (setup->rootless)
		return output_complain("CRI-O runs as root only\n    Run this without --rootless.");
	r = setup_find_daemon(setup, geteuid(), NULL);
	return r ? r : setup_find_path(setup, OWN_FILE, OWN_FILE);
}

/* The last of CRI-O's other files, in the order in which it reads them, that says something about @path. */
static int crio_find_file(const struct setup *setup, const char *path, char **ret)
{
	int r = 0;

	for (const char *const *pattern = engine_crio.files; *pattern && !r; pattern++)
		r = setup_find_elsewhere(setup, *pattern, path, ret);
	return r;
}

static int crio_read_file(const struct setup *setup, const char *path, struct config_file *ret)
{
	_cleanup_free_ char *file = NULL;
	int r = crio_find_file(setup, path, &file);

	return r || !file ? r : config_file_read(file, ret);
}

/*
 * The settings of one runtime, such as the monitor's path and the annotations that it takes. @ret: whether there are
 * any.
 */
static int crio_copy_from(const struct setup *setup, struct toml_file *own, const char *name, bool *ret)
{
	static const char *const ours[] = {"runtime_path", "runtime_type", NULL};
	_cleanup_free_ char *table = text_format(RUNTIME "/runtimes/%s", name),
			    *path = text_format(RUNTIME "/runtimes/%s/runtime_type", name);
	_cleanup_config_file_ struct config_file file = {0};
	_cleanup_free_ char *type = NULL;
	int r;

	if (!table || !path)
		return output_no_memory();
	r = crio_read_file(setup, table, &file);
	if (r || !file.exists)
		return r;
	(void)toml_text_get_string(&file.text, path, &type);
	/* One for virtual machines has settings of its own. */
	if (type && streq(type, "vm"))
		return 0;
	*ret = true;
	return setup_check_toml(setup, toml_file_copy(own, &file.text, table, TABLE, ours), TABLE);
}

/* What applies to the runtime that containers have now is to apply to ours, which starts one of them. */
static int crio_copy_runtime(const struct setup *setup, struct toml_file *own)
{
	_cleanup_config_file_ struct config_file file = {0};
	_cleanup_free_ char *chosen = NULL;
	bool found = false;
	int r = crio_read_file(setup, engine_crio.default_runtime, &file);

	if (!r && file.exists)
		(void)toml_text_get_string(&file.text, engine_crio.default_runtime, &chosen);
	const char *const names[] = {chosen ? chosen : "runc", "runc", "crun"};

	for (size_t i = 0; i < ARRAY_SIZE(names) && !r && !found; i++)
		r = crio_copy_from(setup, own, names[i], &found);
	return r;
}

static int crio_edit(const struct setup *setup, struct text *text)
{
	_cleanup_toml_file_ struct toml_file own = {.text = text};
	_cleanup_free_ char *runtime = setup_quote_runtime(setup), *other = NULL;
	bool there = toml_text_mentions(text, TABLE);
	int r = crio_find_file(setup, engine_crio.runtime, &other);

	if (!r && other)
		r = setup_refuse_other(setup, other);
	if (r || !runtime)
		return r ? r : output_no_memory();
	if (setup->set_default)
		r = toml_file_put(&own, RUNTIME, "default_runtime", "\"nvidia\"");
	if (r == 0)
		r = toml_file_put(&own, TABLE, "runtime_path", runtime);
	if (r == 0)
		r = toml_file_put(&own, TABLE, "runtime_type", "\"oci\"");
	r = setup_check_toml(setup, r, TABLE);
	if (!r && !there)
		r = crio_copy_runtime(setup, &own);
	return r ? r : setup_check_toml(setup, toml_file_finish(&own), TABLE);
}

static int crio_forget(struct text *text)
{
	return toml_file_cut(text, NULL);
}

const struct setup_engine setup_crio = {
	.facts = &engine_crio,
	.format = &setup_toml,
	.look = crio_look,
	.edit = crio_edit,
	.forget = crio_forget,
	.advise = setup_advise_restart,
};
