/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/setup/setup.h"

#include <glob.h>
#include <string.h>

#include "base/json.h"
#include "cli/output.h"
#include "cli/session.h"
#include "cli/verbs.h"
#include "engines/config.h"
#include "engines/daemon.h"

/* Text that only our specs contain. */
#define OURS "=void"

/* Whether some file has the kind. Engines ignore devices that two files have. */
static bool setup_cdi_has_spec(const struct setup *setup, const char *kind)
{
	bool found = false;
	glob_t paths;

	if (glob("{/etc,/var/run}/cdi/*.{json,yaml}", GLOB_BRACE, NULL, &paths) != 0)
		return false;
	for (size_t i = 0; i < paths.gl_pathc && !found; i++) {
		_cleanup_config_file_ struct config_file file = {0};

		found = config_file_read(paths.gl_pathv[i], &file) == 0 && file.text.size &&
			memmem(file.text.data, file.text.size, kind, strlen(kind));
		if (found && !memmem(file.text.data, file.text.size, OURS, strlen(OURS)))
			setup_print(setup, "%s has devices of %s already, so no CDI spec of them is written",
				    paths.gl_pathv[i], kind);
	}
	globfree(&paths);
	return found;
}

/*
 * Saves the entry before it writes the spec, so that --remove always finds the spec. If writing fails, it removes the
 * entry.
 */
static int setup_cdi_save(struct setup *setup, const struct session *session, const char *kind)
{
	_cleanup_free_ char *hook = path_of_program("ctr-gpu-hook"), *path = NULL, *written = NULL,
			    *output = text_buffer_format("%s/", cdi_directory());
	_cleanup_json_ json_t *entry = NULL;
	int r;

	if (!output || !hook)
		return output_no_memory();
	r = ctr_gpu_cdi_path(session->context, kind, output, &path);
	if (r)
		return session_check(session, r);
	entry = json_pack("{s:o}", "directories", config_file_missing_directories(output));
	r = entry ? saved_state_set(&setup->state, path, entry) : output_no_memory();
	if (r)
		return r;
	r = session_check(session, ctr_gpu_cdi_save(session->context, session->host, session->request, kind, hook, path,
						    &written));
	if (!r)
		setup_print(setup, "%s: CDI spec of %s written", path, kind);
	else
		(void)saved_state_set(&setup->state, path, NULL);
	return r;
}

static int setup_cdi_put_kind(struct setup *setup, const struct session *session, const char *kind)
{
	if (setup_cdi_has_spec(setup, kind))
		return 0;
	if (!setup->rootless && !setup->dry_run)
		return setup_cdi_save(setup, session, kind);
	if (setup->rootless)
		setup_print(setup,
			    "the CDI spec of %s, for --device %s=all, is missing; "
			    "root writes it: sudo ctr-gpu cdi generate",
			    kind, kind);
	else
		setup_print(setup, "a CDI spec of %s would be written below %s", kind, cdi_directory());
	return 0;
}

/* What the engine's file says of where specs are, and what that means for those that are written. */
static void setup_cdi_warn_of_directories(const struct setup *setup)
{
	const struct engine *facts = setup->engine->facts;
	_cleanup_engine_config_ struct engine_config config = {.cdi = -1};
	_cleanup_rootfs_ struct rootfs root = ROOTFS_CLOSED;
	const char *usual = cdi_directory();

	if (daemon_open_root(&setup->daemon, &root) < 0 ||
	    engine_config_read(facts, &setup->daemon, &root, &config) < 0 || config.cdi_directories.count == 0 ||
	    strv_contains(&config.cdi_directories, usual))
		return;
	setup_print(setup,
		    "%s does not read CDI specs in %s, but in %s; one for it: sudo ctr-gpu cdi generate --output=%s/",
		    facts->label, usual, config.cdi_directories.items[0], config.cdi_directories.items[0]);
}

int setup_cdi_put(struct setup *setup)
{
	_cleanup_session_ struct session session = {.mute = true};
	_cleanup_free_ char *kinds = NULL;
	char *rest, *kind;
	int r = session_open(&session, setup->globals);

	if (r)
		return r;
	r = ctr_gpu_request_new(session.context, &session.request);
	if (!r)
		r = ctr_gpu_request_set_devices(session.request, "all");
	if (!r)
		r = ctr_gpu_host_new(session.context, &session.host);
	if (!r)
		r = ctr_gpu_cdi_kinds(session.host, &kinds);
	if (r || !*kinds) {
		const char *reason =
			r ? ctr_gpu_context_message(session.context) : "this host has no GPU that can be used";

		/* The engine's file is right even if the host gets a GPU only later. */
		setup_print(setup, "no CDI spec is written, for --device nvidia.com/gpu=all: %.*s",
			    (int)strcspn(reason, "\n"), reason);
		return 0;
	}
	setup_cdi_warn_of_directories(setup);
	rest = kinds;
	while (!r && (kind = strsep(&rest, ",")))
		r = setup_cdi_put_kind(setup, &session, kind);
	return r;
}

static int setup_cdi_remove_spec(struct setup *setup, const char *path, const json_t *entry)
{
	_cleanup_config_file_ struct config_file file = {0};
	int r;

	if (setup->dry_run) {
		setup_print(setup, "%s would be removed, unless another engine needs it", path);
		return 0;
	}
	r = config_file_read(path, &file);
	if (!r && file.exists)
		r = config_file_unlink(&file);
	if (r)
		return r;
	config_file_remove_directories(json_object_get(entry, "directories"));
	setup_print(setup, "%s: removed", path);
	return saved_state_set(&setup->state, path, NULL);
}

int setup_cdi_take_back(struct setup *setup, const json_t *kept)
{
	_cleanup_json_ json_t *entries = json_copy(setup->state.entries);
	const char *path;
	json_t *entry;
	int r = entries ? 0 : output_no_memory();

	json_object_foreach (entries, path, entry)
		if (!r && !json_object_get(entry, "engine") && !json_object_get(kept, path))
			r = setup_cdi_remove_spec(setup, path, entry);
	return r;
}

int setup_cdi_remove(struct setup *setup)
{
	const char *path;
	json_t *entry;

	json_object_foreach (setup->state.entries, path, entry)
		if (json_object_get(entry, "engine"))
			return 0;
	return setup_cdi_take_back(setup, NULL);
}
