/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Podman: a file of our own among those of containers.conf(5), the machine's or the user's. There is no daemon to notice it.
 * Containers that ask by NVIDIA_VISIBLE_DEVICES get their GPUs through the hooks directory, without any of this.
 */

#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/output.h"
#include "cli/setup/setup.h"
#include "engines/engine.h"
#include "engines/toml_text.h"

#define OWN_NAME "99-ctr-gpu.conf"
#define DIRECTORY "containers/containers.conf.d/"
#define RUNTIME "engine/runtimes/nvidia"

static int no_memory(void)
{
	return output_complain("out of memory");
}

static int look(struct setup *setup)
{
	setup->rootless |= geteuid() != 0;
	if (setup->config)
		setup->path = strdup(setup->config);
	else
		setup->path = setup->rootless ? engine_user_file(DIRECTORY OWN_NAME) : strdup("/etc/" DIRECTORY OWN_NAME);
	return setup->path ? 0 : no_memory();
}

static int find_other(const struct setup *setup, char **ret)
{
	static const char *const machine[] = {"/usr/share/containers/containers.conf", "/etc/containers/containers.conf", "/etc/" DIRECTORY "*.conf"};
	static const char *const own[] = {"containers/containers.conf", DIRECTORY "*.conf"};
	int status = 0;

	for (size_t i = 0; i < sizeof(machine) / sizeof(machine[0]) && !status; i++)
		status = setup_find_elsewhere(setup, machine[i], RUNTIME, ret);
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]) && !status && setup->rootless; i++) {
		_cleanup_free_ char *pattern = engine_user_file(own[i]);

		status = pattern ? setup_find_elsewhere(setup, pattern, RUNTIME, ret) : no_memory();
	}
	return status;
}

static int check_owner(const struct setup *setup)
{
	_cleanup_free_ char *other = NULL;
	int status;

	status = find_other(setup, &other);
	return status || !other ? status : setup_refuse_other(setup, setup->path, other, "Podman");
}

static int edit(struct setup *setup, struct text *text, json_t *edits)
{
	_cleanup_toml_edit_ struct toml_edit toml = {.text = text, .journal = edits};
	_cleanup_free_ char *quoted = setup_quote_runtime(setup), *list = quoted ? text_format("[%s]", quoted) : NULL;
	int status, r = 0;

	status = check_owner(setup);
	if (status)
		return status;
	if (!list)
		return no_memory();
	if (setup->set_default)
		r = toml_text_put(&toml, "engine", "runtime", "\"nvidia\"");
	if (r == 0)
		r = toml_text_put(&toml, "engine/runtimes", "nvidia", list);
	if (r == 0)
		r = toml_text_finish(&toml);
	return setup_check_toml(setup, r, "engine/runtimes");
}

/* Podman reads the second only where it is told to. */
static void advise(struct setup *setup, bool changed)
{
	static const char *const hooks[] = {"/usr/share/containers/oci/hooks.d/ctr-gpu.json", "/etc/containers/oci/hooks.d/ctr-gpu.json"};

	(void)changed;
	if (setup->remove || access(hooks[0], F_OK) == 0 || access(hooks[1], F_OK) == 0)
		return;
	setup_say(setup, "%s is not there, so NVIDIA_VISIBLE_DEVICES gives GPUs only to containers with --runtime=nvidia", hooks[0]);
}

const struct setup_engine setup_podman = {
	.name = "podman",
	.look = look,
	.check = toml_text_check,
	.undo = toml_text_undo,
	.edit = edit,
	.forget = toml_text_forget,
	.advise = advise,
};
