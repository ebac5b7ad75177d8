/* SPDX-License-Identifier: Apache-2.0 */

/* CRI-O: a file of our own among those that it reads one after the other, the later ones winning. */

#include <string.h>

#include "base/cleanup.h"
#include "cli/config_file.h"
#include "cli/output.h"
#include "cli/setup/setup.h"
#include "engines/engine.h"
#include "engines/toml_text.h"

#define OWN_FILE "/etc/crio/crio.conf.d/99-ctr-gpu.conf"
#define RUNTIME "crio/runtime"
#define TABLE RUNTIME "/runtimes/nvidia"

static int look(struct setup *setup)
{
	if (setup->rootless)
		return output_complain("CRI-O runs as root only\n    Run this without --rootless.");
	setup->path = strdup(setup->config ? setup->config : OWN_FILE);
	if (!setup->path)
		return output_complain("out of memory");
	return setup_find_daemon(setup, "crio", geteuid(), NULL);
}

/* Those in the directory that are sorted behind ours win, whatever ours says. */
static int check_owner(const struct setup *setup)
{
	_cleanup_free_ char *other = NULL;
	int status;

	status = setup_find_elsewhere(setup, "/etc/crio/crio.conf", TABLE "/runtime_path", &other);
	if (!status)
		status = setup_find_elsewhere(setup, "/etc/crio/crio.conf.d/*", TABLE "/runtime_path", &other);
	if (status || !other)
		return status;
	return setup_refuse_other(setup, OWN_FILE, other, "CRI-O");
}

/* The last of CRI-O's files, in the order in which it reads them, that says something about @path. */
static int find_file(const struct setup *setup, const char *path, struct config_file *ret)
{
	_cleanup_free_ char *file = NULL;
	int status;

	status = setup_find_elsewhere(setup, "/etc/crio/crio.conf", path, &file);
	if (!status)
		status = setup_find_elsewhere(setup, "/etc/crio/crio.conf.d/*", path, &file);
	return status || !file ? status : config_file_read(file, ret);
}

/* The runtime that containers have now, unless CRI-O is to use what is its default. @ret stays NULL then. */
static int find_default(const struct setup *setup, char **ret)
{
	_cleanup_config_file_ struct config_file file = {0};
	int status = find_file(setup, RUNTIME "/default_runtime", &file);

	if (!status && file.exists)
		(void)toml_text_get_string(&file.text, RUNTIME "/default_runtime", ret);
	return status;
}

/* The settings of one runtime, such as the monitor's path and the annotations that it takes. @ret: whether there are any. */
static int copy_from(const struct setup *setup, struct toml_edit *edit, const char *name, bool *ret)
{
	static const char *const own[] = {"runtime_path", "runtime_type", NULL};
	_cleanup_free_ char *table = text_format(RUNTIME "/runtimes/%s", name), *path = text_format(RUNTIME "/runtimes/%s/runtime_type", name);
	_cleanup_config_file_ struct config_file file = {0};
	_cleanup_free_ char *type = NULL;
	int status;

	if (!table || !path)
		return output_complain("out of memory");
	status = find_file(setup, table, &file);
	if (status || !file.exists)
		return status;
	(void)toml_text_get_string(&file.text, path, &type);
	/* One for virtual machines has settings of its own. */
	if (type && strcmp(type, "vm") == 0)
		return 0;
	*ret = true;
	return setup_check_toml(setup, toml_text_copy(edit, &file.text, table, TABLE, own), TABLE);
}

/* What applies to the runtimes that are used now is to apply to ours, which starts one of them. */
static int copy_runtime(const struct setup *setup, struct toml_edit *edit)
{
	_cleanup_free_ char *chosen = NULL;
	bool found = false;
	int status = find_default(setup, &chosen);
	const char *const names[] = {chosen ? chosen : "runc", "runc", "crun"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && !status && !found; i++)
		status = copy_from(setup, edit, names[i], &found);
	return status;
}

static int edit(struct setup *setup, struct text *text, json_t *edits)
{
	_cleanup_toml_edit_ struct toml_edit toml = {.text = text, .journal = edits};
	_cleanup_free_ char *runtime = setup_quote_runtime(setup);
	bool there = toml_text_mentions(text, TABLE);
	int status, r = runtime ? 0 : -1;

	status = check_owner(setup);
	if (status)
		return status;
	if (r == 0 && setup->set_default)
		r = toml_text_put(&toml, RUNTIME, "default_runtime", "\"nvidia\"");
	if (r == 0)
		r = toml_text_put(&toml, TABLE, "runtime_path", runtime);
	if (r == 0)
		r = toml_text_put(&toml, TABLE, "runtime_type", "\"oci\"");
	status = setup_check_toml(setup, r, TABLE);
	if (!status && !there)
		status = copy_runtime(setup, &toml);
	return status ? status : setup_check_toml(setup, toml_text_finish(&toml), TABLE);
}

static void advise(struct setup *setup, bool changed)
{
	const struct daemon *daemon = &setup->daemon;
	_cleanup_free_ char *command = NULL;

	if (!daemon->pid) {
		setup_say(setup, "no crio is running; it reads the file when it starts");
		return;
	}
	if (!changed)
		return;
	command = engine_restart_command(&engine_crio, daemon, false, ENGINE_RESTART);
	setup_say(setup, "next: %s", command ? command : "restart CRI-O");
}

const struct setup_engine setup_crio = {
	.name = "crio",
	.look = look,
	.check = toml_text_check,
	.undo = toml_text_undo,
	.edit = edit,
	.forget = toml_text_forget,
	.advise = advise,
};
