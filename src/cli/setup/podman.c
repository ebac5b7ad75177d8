/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Podman: a file of our own among those of containers.conf(5), the machine's or the user's. There is no daemon to
 * notice it. Containers that ask by NVIDIA_VISIBLE_DEVICES get their GPUs through the hooks directory, without any of
 * this.
 */

#include <unistd.h>

#include "base/cleanup.h"
#include "cli/output.h"
#include "cli/setup/setup.h"
#include "cli/setup/toml_file.h"

#define OWN_FILE "containers/containers.conf.d/99-ctr-gpu.conf"

static int podman_look(struct setup *setup)
{
	setup->rootless |= geteuid() != 0;
	return setup_find_path(setup, "/etc/" OWN_FILE, OWN_FILE);
}

static int podman_check_owner(const struct setup *setup)
{
	_cleanup_free_ char *other = NULL;
	int r = 0;

	for (const char *const *file = engine_podman.files; *file && !r; file++)
		r = setup_find_elsewhere(setup, *file, engine_podman.runtime, &other);
	for (const char *const *file = engine_podman.user_files; *file && !r && setup->rootless; file++) {
		_cleanup_free_ char *pattern = engine_user_file(*file);

		r = pattern ? setup_find_elsewhere(setup, pattern, engine_podman.runtime, &other) : output_no_memory();
	}
	return r || !other ? r : setup_refuse_other(setup, other);
}

static int podman_edit(const struct setup *setup, struct text *text)
{
	_cleanup_free_ char *quoted = setup_quote_runtime(setup), *list = quoted ? text_format("[%s]", quoted) : NULL;
	_cleanup_toml_file_ struct toml_file file = {.text = text};
	int r = podman_check_owner(setup);

	if (r || !list)
		return r ? r : output_no_memory();
	if (setup->set_default)
		r = toml_file_put(&file, "engine", "runtime", "\"nvidia\"");
	if (r == 0)
		r = toml_file_put(&file, "engine/runtimes", "nvidia", list);
	if (r == 0)
		r = toml_file_finish(&file);
	return setup_check_toml(setup, r, "engine/runtimes");
}

static int podman_forget(struct text *text)
{
	return toml_file_cut(text, NULL);
}

/* Podman reads the second only where it is told to. */
static void podman_advise(struct setup *setup, bool changed)
{
	static const char *const hooks[] = {"/usr/share/containers/oci/hooks.d/ctr-gpu.json",
					    "/etc/containers/oci/hooks.d/ctr-gpu.json"};

	(void)changed;
	if (!setup->remove && access(hooks[0], F_OK) < 0 && access(hooks[1], F_OK) < 0)
		setup_say(setup,
			  "%s is not there, so NVIDIA_VISIBLE_DEVICES gives GPUs only to containers with "
			  "--runtime=nvidia",
			  hooks[0]);
}

const struct setup_engine setup_podman = {
	.facts = &engine_podman,
	.format = &setup_toml,
	.look = podman_look,
	.edit = podman_edit,
	.forget = podman_forget,
	.advise = podman_advise,
};
