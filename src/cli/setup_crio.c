/* SPDX-License-Identifier: Apache-2.0 */

/* CRI-O: a file of our own among those that it reads one after the other, the later ones winning. */

#include <string.h>

#include "cli/cleanup.h"
#include "cli/output.h"
#include "cli/service.h"
#include "cli/setup.h"
#include "engine/toml_text.h"

#define OWN_FILE "/etc/crio/crio.conf.d/99-ctr-gpu.conf"
#define TABLE "crio/runtime/runtimes/nvidia"

static int look(struct setup *setup)
{
	if (setup->rootless)
		return output_complain("CRI-O runs as root; there is no rootless one to set up");
	setup->path = strdup(setup->config ? setup->config : OWN_FILE);
	if (!setup->path)
		return output_complain("there is no memory left");
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

static int edit(struct setup *setup, struct text *text, json_t *edits)
{
	_cleanup_toml_edit_ struct toml_edit toml = {.text = text, .journal = edits};
	_cleanup_free_ char *runtime = setup_quote_runtime(setup);
	int status, r = runtime ? 0 : -1;

	status = check_owner(setup);
	if (status)
		return status;
	if (r == 0 && setup->set_default)
		r = toml_text_put(&toml, "crio/runtime", "default_runtime", "\"nvidia\"");
	if (r == 0)
		r = toml_text_put(&toml, TABLE, "runtime_path", runtime);
	if (r == 0)
		r = toml_text_put(&toml, TABLE, "runtime_type", "\"oci\"");
	if (r == 0)
		r = toml_text_finish(&toml);
	return setup_check_toml(setup, r, TABLE);
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
	command = service_command("crio", false, daemon->pid, SERVICE_RESTART);
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
